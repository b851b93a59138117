-- works-from: 0027
-- Which definitions of src/store/sql this database has: src/database/definitions.ts applies those whose content is another.
-- What defined the functions before, up to 0026_model_holds.sql, is history: a restored database runs it, then the definitions.
create table sql_definition (
  name text primary key,
  -- Of the file's content, in hexadecimal.
  sha256 text not null,
  -- Of the set that the file was applied with. A program with an older set applies nothing.
  revision integer not null,
  applied_at timestamptz not null default now()
);
