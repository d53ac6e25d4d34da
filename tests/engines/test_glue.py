"""What the stand-in for Glue adds to moto, and each of its faults."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from moto.glue.models import FakeTable

from tests.glue import ANY, Fault, Glue
from tests.waiting import eventually


@pytest.fixture
def client(glue: Glue) -> Any:
    client = glue.client()
    client.create_database(DatabaseInput={"Name": "flights"})
    return client


def create_table(client: Any, name: str, **parameters: str) -> None:
    client.create_table(DatabaseName="flights", TableInput={"Name": name, "Parameters": parameters})


def update_table(client: Any, name: str, **more: Any) -> None:
    client.update_table(DatabaseName="flights", TableInput={"Name": name}, **more)


def table(client: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get_table(DatabaseName="flights", Name=name)["Table"]
    return found


def tables(client: Any) -> list[str]:
    pages = client.get_paginator("get_tables").paginate(DatabaseName="flights")
    return [table["Name"] for page in pages for table in page["TableList"]]


def code(refused: pytest.ExceptionInfo[ClientError]) -> str:
    return str(refused.value.response["Error"]["Code"])


def test_tables_come_in_pages(client: Any) -> None:
    names = [f"delays_{day:03}" for day in range(105)]
    for name in names:
        create_table(client, name)
    first = client.get_tables(DatabaseName="flights")
    assert len(first["TableList"]) == 100
    rest = client.get_tables(DatabaseName="flights", NextToken=first["NextToken"])
    assert len(rest["TableList"]) == 5 and "NextToken" not in rest
    assert sorted(table["Name"] for table in first["TableList"] + rest["TableList"]) == names
    paged = client.get_paginator("get_tables").paginate(
        DatabaseName="flights", Expression="delays_00.*", PaginationConfig={"PageSize": 3}
    )
    assert [len(page["TableList"]) for page in paged] == [3, 3, 3, 1]
    with pytest.raises(ClientError) as refused:
        client.get_tables(DatabaseName="flights", MaxResults=101)
    assert code(refused) == "InvalidInputException"


def test_a_page_goes_on_after_the_last_name_though_that_table_is_gone(client: Any) -> None:
    for name in ("airlines", "airports", "delays", "planes"):
        create_table(client, name)
    first = client.get_tables(DatabaseName="flights", MaxResults=2)
    client.delete_table(DatabaseName="flights", Name="airports")
    rest = client.get_tables(DatabaseName="flights", NextToken=first["NextToken"])
    assert [table["Name"] for table in rest["TableList"]] == ["delays", "planes"]


def test_databases_versions_and_partitions_come_in_pages(client: Any) -> None:
    for name in ("airports", "sales"):
        client.create_database(DatabaseInput={"Name": name})
    pages = client.get_paginator("get_databases").paginate(PaginationConfig={"PageSize": 2})
    assert [[one["Name"] for one in page["DatabaseList"]] for page in pages] == [["airports", "flights"], ["sales"]]

    create_table(client, "delays")
    update_table(client, "delays")
    versions = client.get_paginator("get_table_versions").paginate(
        DatabaseName="flights", TableName="delays", PaginationConfig={"PageSize": 1}
    )
    assert [one["VersionId"] for page in versions for one in page["TableVersions"]] == ["2", "1"]

    for year in ("2013", "2014", "2015"):
        client.create_partition(DatabaseName="flights", TableName="delays", PartitionInput={"Values": [year]})
    partitions = client.get_paginator("get_partitions").paginate(
        DatabaseName="flights", TableName="delays", PaginationConfig={"PageSize": 2}
    )
    years = [[one["Values"] for one in page["Partitions"]] for page in partitions]
    assert years == [[["2013"], ["2014"]], [["2015"]]]


def test_an_update_from_a_stale_version_is_refused(client: Any) -> None:
    create_table(client, "delays", metadata_location="s3://lake/v1")
    created = table(client, "delays")
    version = created["VersionId"]
    update_table(client, "delays", VersionId=version)
    with pytest.raises(ClientError) as refused:
        update_table(client, "delays", VersionId=version)
    assert code(refused) == "ConcurrentModificationException"
    updated = table(client, "delays")
    assert int(updated["VersionId"]) == int(version) + 1
    assert updated["CreateTime"] == created["CreateTime"] == created["UpdateTime"] < updated["UpdateTime"]


def test_of_updates_at_once_from_one_version_one_wins(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create_table(client, "delays")
    version = table(client, "delays")["VersionId"]
    at_once = FakeTable.update

    def slowly(self: FakeTable, table_input: dict[str, Any]) -> None:
        time.sleep(0.02)  # the others read the version meanwhile
        at_once(self, table_input)

    monkeypatch.setattr(FakeTable, "update", slowly)

    def update(_: int) -> bool:
        try:
            update_table(client, "delays", VersionId=version)
        except client.exceptions.ConcurrentModificationException:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(update, range(16))) == 1


def test_skip_archive_keeps_no_old_version(client: Any) -> None:
    create_table(client, "delays")
    update_table(client, "delays")
    update_table(client, "delays", SkipArchive=True)
    versions = client.get_table_versions(DatabaseName="flights", TableName="delays")["TableVersions"]
    assert [one["VersionId"] for one in versions] == ["3", "1"]


def test_a_database_goes_with_its_tables(client: Any) -> None:
    create_table(client, "delays")
    client.delete_database(Name="flights")
    client.create_database(DatabaseInput={"Name": "flights"})
    assert tables(client) == []


def test_names_fold_and_catalogs_are_apart(client: Any) -> None:
    create_table(client, "Delays")
    assert tables(client) == ["delays"]
    with pytest.raises(client.exceptions.AlreadyExistsException):
        create_table(client, "DELAYS")
    assert client.get_databases(CatalogId="210987654321")["DatabaseList"] == []


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.ERROR, "InternalServiceException"),
        (Fault.THROTTLED, "ThrottlingException"),
        (Fault.EXPIRED, "ExpiredTokenException"),
    ],
)
def test_an_answer_that_refuses_changes_nothing(glue: Glue, client: Any, fault: Fault, expected: str) -> None:
    glue.fail("CreateTable", fault, times=2)
    for _ in range(2):
        with pytest.raises(ClientError) as refused:
            create_table(client, "delays")
        assert code(refused) == expected
    assert tables(client) == []
    create_table(client, "delays")
    assert tables(client) == ["delays"]


@pytest.mark.parametrize(("fault", "applied"), [(Fault.REQUEST_LOST, False), (Fault.REPLY_LOST, True)])
def test_a_connection_that_ends_leaves_the_outcome_unknown(
    glue: Glue, client: Any, fault: Fault, applied: bool
) -> None:
    glue.fail("CreateTable", fault)
    with pytest.raises(ConnectionClosedError):
        create_table(client, "delays")
    assert tables(client) == (["delays"] if applied else [])


@pytest.mark.parametrize(("fault", "applied"), [(Fault.REQUEST_LATE, False), (Fault.REPLY_LATE, True)])
def test_a_late_call_is_applied_though_its_caller_left(glue: Glue, client: Any, fault: Fault, applied: bool) -> None:
    hasty = glue.client(config=Config(retries={"total_max_attempts": 1}, read_timeout=0.3))
    glue.fail("CreateTable", fault)
    with pytest.raises(ReadTimeoutError):
        create_table(hasty, "delays")
    if not applied:
        assert tables(client) == []
        glue.let_through()
    assert eventually(lambda: tables(client) == ["delays"])
    glue.let_through()


def test_a_fault_may_wait_hit_everything_and_last_until_healed(glue: Glue, client: Any) -> None:
    create_table(client, "delays")
    glue.fail(ANY, Fault.THROTTLED, times=None, after=1)
    assert tables(client) == ["delays"]
    for _ in range(3):
        with pytest.raises(ClientError):
            tables(client)
    with pytest.raises(ClientError) as refused:
        glue.client("sts").get_caller_identity()
    assert code(refused) == "Throttling"
    glue.heal()
    assert tables(client) == ["delays"]


def test_what_is_not_listed_yet_can_be_loaded(glue: Glue, client: Any) -> None:
    create_table(client, "airports")
    glue.stop_listing_new_ones()
    create_table(client, "delays")
    client.create_database(DatabaseInput={"Name": "sales"})
    assert tables(client) == ["airports"]
    assert [one["Name"] for one in client.get_databases()["DatabaseList"]] == ["flights"]
    assert table(client, "delays")["Name"] == "delays"
    glue.heal()
    assert tables(client) == ["airports", "delays"]


def test_calls_are_kept(glue: Glue, client: Any) -> None:
    create_table(client, "delays")
    operation, parameters = glue.calls[-1]
    assert (operation, parameters["TableInput"]["Name"]) == ("CreateTable", "delays")


def test_s3_and_sts_answer_at_the_same_address(glue: Glue) -> None:
    assert glue.create_bucket("lake") == "s3://lake"
    s3 = glue.client("s3")
    s3.put_object(Bucket="lake", Key="metadata/v1.json", Body=b"{}")
    assert s3.get_object(Bucket="lake", Key="metadata/v1.json")["Body"].read() == b"{}"
    glue.fail("s3:PUT", Fault.REPLY_LOST)
    with pytest.raises(ConnectionClosedError):
        s3.put_object(Bucket="lake", Key="metadata/v2.json", Body=b"{}")
    assert s3.list_objects_v2(Bucket="lake")["KeyCount"] == 2
    assert glue.client("sts").get_caller_identity()["Account"] == glue.account
