-- The oldest schema version whose code may run on this database. An expanding migration leaves it as it is. A migration
-- that removes something sets it, in the same transaction, to the first version that does without it.
create table schema_migration_range (
  is_only boolean primary key check (is_only),
  oldest_version text not null
);
insert into schema_migration_range values (true, '0018-schema-range');
