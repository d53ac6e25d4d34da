-- What Hive's lock manager keeps in the metastore's database; Hive itself makes these only with schematool.
create table txns (txn_id bigint primary key, txn_state char(1) not null, txn_started bigint not null,
    txn_last_heartbeat bigint not null, txn_user varchar(128) not null, txn_host varchar(128) not null);
create table txn_components (tc_txnid bigint references txns (txn_id), tc_database varchar(128) not null,
    tc_table varchar(128), tc_partition varchar(767), tc_operation_type char(1) not null);
create table completed_txn_components (ctc_txnid bigint, ctc_database varchar(128) not null, ctc_table varchar(128),
    ctc_partition varchar(767));
create table write_set (ws_database varchar(128) not null, ws_table varchar(128) not null, ws_partition varchar(767),
    ws_txnid bigint not null, ws_commit_id bigint not null, ws_operation_type char(1) not null);
create table hive_locks (hl_lock_ext_id bigint not null, hl_lock_int_id bigint not null, hl_txnid bigint,
    hl_db varchar(128) not null, hl_table varchar(128), hl_partition varchar(767), hl_lock_state char(1) not null,
    hl_lock_type char(1) not null, hl_last_heartbeat bigint not null, hl_acquired_at bigint,
    hl_user varchar(128) not null, hl_host varchar(128) not null, hl_heartbeat_count integer,
    hl_agent_info varchar(128), hl_blockedby_ext_id bigint, hl_blockedby_int_id bigint,
    primary key (hl_lock_ext_id, hl_lock_int_id));
create table aux_table (mt_key1 varchar(128) not null, mt_key2 bigint not null, mt_comment varchar(255),
    primary key (mt_key1, mt_key2));
create table compaction_queue (cq_id bigint primary key, cq_database varchar(128) not null,
    cq_table varchar(128) not null, cq_partition varchar(767), cq_state char(1) not null, cq_type char(1) not null,
    cq_tblproperties varchar(2048), cq_worker_id varchar(128), cq_start bigint, cq_run_as varchar(128),
    cq_highest_txn_id bigint, cq_meta_info varchar(2048) for bit data, cq_hadoop_job_id varchar(32));
create table completed_compactions (cc_id bigint primary key, cc_database varchar(128) not null,
    cc_table varchar(128) not null, cc_partition varchar(767), cc_state char(1) not null, cc_type char(1) not null,
    cc_tblproperties varchar(2048), cc_worker_id varchar(128), cc_start bigint, cc_end bigint, cc_run_as varchar(128),
    cc_highest_txn_id bigint, cc_meta_info varchar(2048) for bit data, cc_hadoop_job_id varchar(32));
create table next_txn_id (ntxn_next bigint not null);
create table next_lock_id (nl_next bigint not null);
create table next_compaction_queue_id (ncq_next bigint not null);
insert into next_txn_id values (1);
insert into next_lock_id values (1);
insert into next_compaction_queue_id values (1);
