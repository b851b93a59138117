import type pg from "pg";

/** What a backup may stumble over. */
const nastyText = "Grüße, 世界 \u{1F980} \u0001\u007f\t\r\n\\N \\. \\\\ 'quoted' \"twice\", {braces}";
const nastyBytes = Buffer.from([0, 1, 0, 255, 92, 46, 10, 0]);
const nastyJson = { text: nastyText, "": null, nested: [{ number: 1e-7 }, [], true] };

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
  /** Table and column that it refers to. */
  readonly parent: string | null;
  readonly parentColumn: string | null;
  /** First of the words that a check lets through. */
  readonly word: string | null;
}

/**
 * Puts `count` rows into every table but those that record what was done to the schema: all columns filled in the first, each that may be null in the last,
 * with what is hard to carry over. New tables are filled without a change here.
 */
export async function fillEveryTable(pool: pg.Pool, count = 3): Promise<string[]> {
  const columns = await readColumns(pool);
  const tables = inOrder(columns);
  for (const table of tables) {
    for (let row = 0; row < count; row += 1) await insertRow(pool, table, row, count, columns);
  }
  return tables;
}

async function readColumns(pool: pg.Pool): Promise<Column[]> {
  const { rows } = await pool.query<Column>(`
    select relation.relname as table, attribute.attname as name, format_type(attribute.atttypid, null) as type,
      not attribute.attnotnull as nullable, parent.relname as parent, referred.attname as "parentColumn",
      (select substring(pg_get_constraintdef(rule.oid) from '''([a-zA-Z_]+)''::text') from pg_constraint rule
        where rule.conrelid = relation.oid and rule.contype = 'c' and rule.conkey = array[attribute.attnum] limit 1) as word
    from pg_attribute attribute join pg_class relation on relation.oid = attribute.attrelid
    left join pg_constraint key on key.conrelid = relation.oid and key.contype = 'f' and key.conkey = array[attribute.attnum]
    left join pg_class parent on parent.oid = key.confrelid
    left join pg_attribute referred on referred.attrelid = key.confrelid and referred.attnum = key.confkey[1]
    where relation.relkind = 'r' and relation.relnamespace = 'public'::regnamespace and relation.relname not in ('migration', 'sql_definition')
      and attribute.attnum > 0 and not attribute.attisdropped and attribute.attgenerated = ''`);
  return rows;
}

/** Those that others refer to first. */
function inOrder(columns: readonly Column[]): string[] {
  const done: string[] = [];
  const visit = (table: string): void => {
    if (done.includes(table)) return;
    for (const { parent } of columns.filter((column) => column.table === table)) {
      if (parent !== null && parent !== table) visit(parent);
    }
    done.push(table);
  };
  for (const { table } of columns) visit(table);
  return done;
}

/** Columns of which a row has one and not the others. */
const alternatives: Readonly<Record<string, readonly string[]>> = { checkpoint_piece: ["sealed", "object_key"] };

/** Columns that may be null only in a row that is of another kind than these, such as one that was deleted. */
const needed: Readonly<Record<string, readonly string[]>> = {
  forge_connection: ["sealed", "master_key"],
  invitation_mail: ["sealed", "master_key"],
};

/** Whether this row has another of the columns in its place. */
function isAlternative({ table, name }: Column, row: number): boolean | null {
  const place = alternatives[table]?.indexOf(name) ?? -1;
  return place === -1 ? null : row % (alternatives[table]?.length ?? 1) !== place;
}

async function insertRow(
  pool: pg.Pool,
  table: string,
  row: number,
  count: number,
  columns: readonly Column[],
): Promise<void> {
  const own = columns.filter((column) => column.table === table);
  const values: unknown[] = [];
  for (const column of own) values.push(await valueOf(pool, column, row, count));
  const names = own.map(({ name }) => `"${name}"`).join(", ");
  const places = own.map(({ type }, index) => `$${index + 1}::${type}`).join(", ");
  await pool.query(`insert into "${table}" (${names}) overriding system value values (${places})`, values);
}

async function valueOf(pool: pg.Pool, column: Column, row: number, count: number): Promise<unknown> {
  const isOther = isAlternative(column, row);
  const isNeeded = needed[column.table]?.includes(column.name) === true;
  if (isOther ?? (column.nullable && !isNeeded && row === count - 1)) return null;
  if (column.parent !== null && column.parent !== column.table) {
    const { rows } = await pool.query<{ value: unknown }>(
      `select "${column.parentColumn}" as value from "${column.parent}" order by 1 offset $1 limit 1`,
      [row],
    );
    return rows[0]?.value ?? null;
  }
  if (column.word !== null) return column.word;
  return ofType(column, row);
}

function ofType({ table, name, type }: Column, row: number): unknown {
  switch (type) {
    case "uuid":
      return crypto.randomUUID();
    case "text":
      return `${nastyText} ${table}.${name} ${row}`;
    case "text[]":
      return row === 0 ? [] : [nastyText, "NULL", "", "{a,b}"];
    case "integer[]":
      return row === 0 ? [] : [row, -1];
    case "uuid[]":
      return [crypto.randomUUID()];
    case "bytea":
      return Buffer.concat([nastyBytes, Buffer.from([row])]);
    case "jsonb":
      return JSON.stringify(nastyJson);
    case "smallint":
    case "integer":
    case "bigint":
      return row + 1;
    case "numeric":
      return `${row}.000001`;
    case "boolean":
      return row % 2 === 0;
    case "date":
      return `2024-02-${row + 27}`;
    case "timestamp with time zone":
      return `1999-12-31 23:59:59.99999${row}+00`;
    default:
      throw new Error(`say in test/database/fill.ts what to put into ${table}.${name}, a ${type}`);
  }
}

/** One line for each table: how many rows, and a hash of all that they hold. */
export async function checksums(pool: pg.Pool): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public' and tablename not in ('migration', 'sql_definition') order by 1",
  );
  const sums: Record<string, string> = {};
  for (const { name } of rows) {
    const read = await pool.query<{ sum: string }>(
      `select count(*) || ' ' || coalesce(md5(string_agg(line, '|' order by line)), '') as sum
       from (select t::text as line from "${name}" t) as lines`,
    );
    sums[name] = read.rows[0]?.sum ?? "";
  }
  return sums;
}
