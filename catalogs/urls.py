"""Routes of the native API for metalakes, catalogs, schemas and tables."""

from catalogs.api.catalogs import Catalog, CatalogConnection, Catalogs, NewCatalogConnection
from catalogs.api.metalakes import Metalake, Metalakes
from catalogs.api.partitions import Partition, Partitions
from catalogs.api.places import ReservedPlace, ReservedPlaces, TablePlace, TablePlaces
from catalogs.api.schemas import Schema, Schemas, SchemasToBeMade
from catalogs.api.tables import Table, Tables
from metalake.rest.views import route

CATALOGS = "metalakes/<metalake>/catalogs"
SCHEMAS = f"{CATALOGS}/<catalog>/schemas"
TABLES = f"{SCHEMAS}/<schema>/tables"
PARTITIONS = f"{TABLES}/<table>/partitions"

# Django tries them in order, so the most frequent come first.
urlpatterns = [
    route(f"{TABLES}/<table>", Table),
    route(TABLES, Tables),
    route(f"{SCHEMAS}/<schema>", Schema),
    route(SCHEMAS, Schemas),
    route(CATALOGS, Catalogs),
    route(f"{SCHEMAS}/<schema>/to-be-made", SchemasToBeMade),
    route(f"{CATALOGS}/testConnection", NewCatalogConnection),
    route(f"{CATALOGS}/<catalog>", Catalog),
    route("metalakes", Metalakes),
    route("metalakes/<metalake>", Metalake),
    route(f"{CATALOGS}/<catalog>/testConnection", CatalogConnection),
    route(f"{CATALOGS}/<catalog>/reserved-places", ReservedPlaces),
    route(f"{CATALOGS}/<catalog>/reserved-places/<place_id>", ReservedPlace),
    route(f"{TABLES}/<table>/places", TablePlaces),
    route(f"{TABLES}/<table>/places/<place_id>", TablePlace),
    route(PARTITIONS, Partitions),
    route(f"{PARTITIONS}/<partition>", Partition),
]
