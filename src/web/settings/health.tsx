import type { ConnectionHealth, ConnectionState } from "../../domain/repositories/connection.ts";
import { Badge, type Tone } from "../elements/badge.tsx";

const tones: Readonly<Record<ConnectionState, { readonly tone: Tone; readonly label: string }>> = {
  ok: { tone: "good", label: "Works" },
  degraded: { tone: "warn", label: "Degraded" },
  broken: { tone: "bad", label: "Broken" },
};

/** Whether a credential at a forge works, in a word. */
export function HealthBadge({ health }: { readonly health: ConnectionHealth }) {
  return <Badge {...tones[health.state]} />;
}

/** What a credential at a forge lacks, and what to do; nothing if it lacks nothing. @param props.of whose it is, for screen readers */
export function HealthProblems({ health, of }: { readonly health: ConnectionHealth; readonly of: string }) {
  if (health.problems.length === 0) return null;
  return (
    <ul aria-label={`What ${of} lacks`} className="space-y-1">
      {health.problems.map(({ missing, why, remedy }) => (
        <li key={missing} className="wrap-anywhere">
          <span className="font-medium">{missing}</span>: {why} <span className="text-muted">{remedy}</span>
        </li>
      ))}
    </ul>
  );
}
