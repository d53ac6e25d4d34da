-- The same shop as MariaDB's people would have made it: 18 tables, 5 views, and what such databases have.
CREATE TABLE language (
    language_id tinyint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, name char(20) NOT NULL,
    last_update timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp()
);
CREATE TABLE country (
    country_id smallint unsigned NOT NULL AUTO_INCREMENT, country varchar(50) NOT NULL COMMENT 'ISO''s, 100% "quoted" \\ back',
    area decimal(20, 6) unsigned, currency decimal(65, 30), codes set('a', 'b', 'it''s'), PRIMARY KEY (country_id),
    UNIQUE KEY by_name (country)
) COMMENT = 'It''s "quoted", 100% \\n; DROP TABLE film';
CREATE TABLE city (
    city_id smallint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, city varchar(50) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL,
    country_id smallint unsigned NOT NULL, place point, UNIQUE (country_id, city),
    FOREIGN KEY (country_id) REFERENCES country (country_id) ON UPDATE CASCADE
);
CREATE TABLE address (
    address_id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, address varchar(50) NOT NULL, address2 varchar(50) DEFAULT NULL,
    district varchar(20) NOT NULL DEFAULT 'now()', city_id smallint unsigned NOT NULL, postal_code varchar(10) DEFAULT '1',
    phone varchar(20) DEFAULT 'a(b', words varchar(20) DEFAULT 'NULL', path varchar(20) DEFAULT 'C:\\new''s', net inet6,
    location geometry NOT NULL, SPATIAL KEY where_it_is (location), KEY by_city (city_id)
);
CREATE TABLE actor (
    actor_id int NOT NULL AUTO_INCREMENT PRIMARY KEY, first_name varchar(45) NOT NULL, last_name varchar(45) NOT NULL,
    full_name varchar(91) GENERATED ALWAYS AS (concat(first_name, ' ', last_name)) STORED,
    initial char(1) AS (left(first_name, 1)) VIRTUAL, KEY by_name (last_name)
);
CREATE TABLE category (category_id tinyint unsigned NOT NULL PRIMARY KEY, name varchar(25) NOT NULL, parent tinyint unsigned);
CREATE TABLE film (
    film_id int(8) NOT NULL AUTO_INCREMENT PRIMARY KEY, title varchar(255) NOT NULL, description text DEFAULT 'none',
    release_year year DEFAULT 2006, language_id tinyint unsigned NOT NULL, rental_duration tinyint unsigned NOT NULL DEFAULT 3,
    rental_rate decimal(4, 2) NOT NULL DEFAULT 4.99, length smallint unsigned DEFAULT NULL, replacement_cost decimal(5, 2),
    rating enum('G', 'PG', 'PG-13', 'it''s R', 'a\\b') DEFAULT 'G', special_features set('Trailers', 'Deleted Scenes'),
    facts json DEFAULT '{}', score float DEFAULT -1.5, exact double, halves float(7, 4), whole decimal(10),
    last_update datetime(3) DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3),
    CONSTRAINT cost CHECK (replacement_cost > 0), KEY by_title (title), UNIQUE KEY by_prefix (description(20)),
    FOREIGN KEY (language_id) REFERENCES language (language_id)
);
CREATE TABLE film_actor (actor_id int NOT NULL, film_id int NOT NULL, role varchar(80), PRIMARY KEY (film_id, actor_id));
CREATE TABLE film_category (film_id int NOT NULL, category_id tinyint unsigned NOT NULL, PRIMARY KEY (film_id, category_id));
CREATE TABLE film_text (film_id int NOT NULL, title varchar(255), words longtext, FULLTEXT KEY (title, words)) ENGINE = MyISAM;
CREATE TABLE store (store_id tinyint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, manager_id int UNIQUE, opens time, closes time(6));
CREATE TABLE staff (
    staff_id int NOT NULL AUTO_INCREMENT, name varchar(90) NOT NULL, picture blob, email varchar(50),
    active boolean NOT NULL DEFAULT true, flag tinyint(1) DEFAULT 0, small tinyint(4), username varchar(16) NOT NULL, mask bit(4) DEFAULT b'101',
    secret varbinary(32), hash binary(20), uid uuid DEFAULT uuid(), token varchar(40) DEFAULT (uuid()), hired date DEFAULT curdate(),
    padded int(5) zerofill, medium mediumint, large longblob, hidden int INVISIBLE DEFAULT 5, wage int CHECK (wage > 0),
    UNIQUE KEY (username), KEY number_of (staff_id)
);
CREATE TABLE customer (
    customer_id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, first_name varchar(45) NOT NULL, last_name varchar(45) NOT NULL,
    create_date datetime NOT NULL, born timestamp NULL DEFAULT NULL, last_update timestamp(6) NULL DEFAULT '2020-01-01 00:00:00'
);
CREATE TABLE inventory (inventory_id bigint NOT NULL PRIMARY KEY, film_id int NOT NULL, store_id tinyint unsigned NOT NULL);
CREATE TABLE rental (
    rental_id int NOT NULL PRIMARY KEY, rented datetime NOT NULL, inventory_id bigint, customer_id int unsigned,
    UNIQUE KEY once (rented, inventory_id, customer_id), FOREIGN KEY (customer_id) REFERENCES customer (customer_id)
);
CREATE TABLE payment (payment_id int NOT NULL, amount decimal(5, 2) NOT NULL, paid date NOT NULL, PRIMARY KEY (payment_id, paid))
    PARTITION BY RANGE (year(paid)) (PARTITION p2022 VALUES LESS THAN (2023), PARTITION rest VALUES LESS THAN MAXVALUE);
CREATE TABLE payment_log (at timestamp(6) NOT NULL DEFAULT current_timestamp(6), price decimal(5, 2)) WITH SYSTEM VERSIONING;
CREATE TABLE `Order Lines; ``all``` (`line no.` int, `select` text, `Größe` varchar(3), `per cent %s` decimal(3));
CREATE SEQUENCE receipts START WITH 1000;
CREATE TRIGGER paid AFTER INSERT ON payment FOR EACH ROW INSERT INTO payment_log (price) VALUES (NEW.amount);
CREATE FUNCTION held(film int) RETURNS int READS SQL DATA RETURN (SELECT count(*) FROM inventory WHERE film_id = film);

CREATE VIEW film_list AS
    SELECT f.film_id AS fid, f.title, c.name AS category, f.rental_rate AS price, f.rating,
    group_concat(concat(a.first_name, ' ', a.last_name) SEPARATOR ', ') AS actors
    FROM film f LEFT JOIN film_category fc ON fc.film_id = f.film_id LEFT JOIN category c ON c.category_id = fc.category_id
    LEFT JOIN film_actor fa ON fa.film_id = f.film_id LEFT JOIN actor a ON a.actor_id = fa.actor_id GROUP BY f.film_id, c.name;
CREATE SQL SECURITY INVOKER VIEW customer_list AS SELECT customer_id AS id, concat(first_name, ' ', last_name) AS name FROM customer;
CREATE VIEW sales_by_year AS SELECT year(paid) AS y, sum(amount) AS total_sales, count(*) AS n FROM payment GROUP BY year(paid);
CREATE ALGORITHM = MERGE VIEW staff_list AS SELECT staff_id, name, if(active, 'active', '') AS notes, uid, padded FROM staff;
CREATE VIEW `who's who` AS SELECT a.full_name AS `full name`, f.role FROM actor a JOIN film_actor f ON f.actor_id = a.actor_id;
