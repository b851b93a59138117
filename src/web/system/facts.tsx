import type { ReactNode } from "react";
import type { DatabaseHealth, ServerHealth } from "../../domain/system/health.ts";
import { Ago } from "../elements/time.tsx";
import { formatBytes, formatNumber } from "../texts/formats.ts";
import { useSystemTexts } from "../texts/system.ts";

/** The server that answers: its versions, and the disk of its data folder. */
export function ServerFacts({ server: { version, nodeVersion, startedAt, disk } }: { server: ServerHealth }) {
  const { server: texts } = useSystemTexts();
  const { freeBytes, totalBytes, neededBytes } = disk;
  return (
    <Facts title={texts.title}>
      <Row name={texts.version}>{version}</Row>
      <Row name={texts.node}>{nodeVersion}</Row>
      <Row name={texts.started}>
        <Ago at={startedAt} />
      </Row>
      <Row name={texts.disk}>
        <meter
          aria-label={texts.disk}
          className="bar my-1.5 block h-2 w-full bg-transparent"
          min={0}
          max={totalBytes}
          value={totalBytes - freeBytes}
          data-kind={freeBytes < neededBytes ? "over" : "disk"}
        />
        {texts.diskFree(formatBytes(freeBytes), formatBytes(totalBytes))}
        <span className="block text-xs text-muted">{texts.needed(formatBytes(neededBytes))}</span>
      </Row>
    </Facts>
  );
}

/** The database: its version, size and migrations. */
export function DatabaseFacts({ database }: { database: DatabaseHealth }) {
  const { database: texts } = useSystemTexts();
  const { version, bytes, migration, migrations, unknownMigrations } = database;
  return (
    <Facts title={texts.title}>
      <Row name={texts.version}>{version}</Row>
      <Row name={texts.size}>{formatBytes(bytes)}</Row>
      <Row name={texts.migrations}>
        {formatNumber(migrations)}
        {unknownMigrations > 0 && (
          <span className="block text-xs text-warn">{texts.unknown(formatNumber(unknownMigrations))}</span>
        )}
      </Row>
      <Row name={texts.migration}>
        <code className="text-xs">{migration.name}</code>
        <span className="block text-xs text-muted">
          <Ago at={migration.ranAt} />
        </span>
      </Row>
    </Facts>
  );
}

function Facts({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title} className="space-y-2">
      <h2 className="label">{title}</h2>
      <dl className="card divide-y divide-line text-sm">{children}</dl>
    </section>
  );
}

function Row({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex gap-x-4 px-4 py-2">
      <dt className="w-2/5 shrink-0 text-muted">{name}</dt>
      <dd className="min-w-0 flex-1 tabular-nums wrap-anywhere">{children}</dd>
    </div>
  );
}
