import type pg from "pg";
import type { DatabaseHealth } from "../domain/system/health.ts";
import { knownMigrations } from "./migrate.ts";

/**
 * Which version of PostgreSQL it is, and which migrations it has.
 * @param directory of the migrations that this Offstage knows
 * @throws Error if it has none
 */
export async function readDatabaseState(pool: pg.Pool, directory: string): Promise<Omit<DatabaseHealth, "bytes">> {
  const known = (await knownMigrations(directory)).map(({ number }) => number);
  const { rows } = await pool.query<Omit<DatabaseHealth, "bytes">>(
    `select current_setting('server_version') as version,
       (select jsonb_build_object('number', number, 'name', name,
          'ranAt', to_char(ran_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
        from migration order by number desc limit 1) as migration,
       count(*)::integer as migrations, (count(*) filter (where number <> all($1)))::integer as "unknownMigrations"
     from migration`,
    [known],
  );
  const [state] = rows;
  if (state === undefined) throw new Error("the database has no migrations");
  return state;
}

/** Size of the database on disk. PostgreSQL looks at each of its files for that. */
export async function readDatabaseBytes(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ bytes: number }>("select pg_database_size(current_database())::float8 as bytes");
  return rows[0]?.bytes ?? 0;
}
