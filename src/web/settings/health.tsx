import type { ConnectionHealth, ConnectionState } from "../../domain/repositories/connection.ts";
import { Badge, type Tone } from "../elements/badge.tsx";
import { useSettingsTexts } from "../texts/settings.ts";

const tones: Readonly<Record<ConnectionState, Tone>> = { ok: "good", degraded: "warn", broken: "bad" };

/** Whether a credential at a forge works, in a word. */
export function HealthBadge({ health }: { readonly health: ConnectionHealth }) {
  const { states } = useSettingsTexts().health;
  return <Badge tone={tones[health.state]} label={states[health.state]} />;
}

/**
 * The missing rights of a credential at a forge, and remedies; empty if none is missing. @param props.of whose it is,
 * for screen readers
 */
export function HealthProblems({ health, of }: { readonly health: ConnectionHealth; readonly of: string }) {
  const { lacks } = useSettingsTexts().health;
  if (health.problems.length === 0) return null;
  return (
    <ul aria-label={lacks(of)} className="space-y-1">
      {health.problems.map(({ missing, why, remedy }) => (
        <li key={missing} className="wrap-anywhere">
          <span className="font-medium">{missing}</span>: {why} <span className="text-muted">{remedy}</span>
        </li>
      ))}
    </ul>
  );
}
