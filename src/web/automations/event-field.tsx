import { Field } from "../elements/field.tsx";
import { formatTime } from "../texts/formats.ts";
import type { Sample } from "./samples.ts";
import type { ChosenEvent } from "./use-chosen-event.ts";

/** Chooses the event that a draft is tried with: one that came in, a sample, or one that is written here. */
export function EventField({ event }: { readonly event: ChosenEvent }) {
  const { choice, choose, deliveries, samples, own, setOwn, problem } = event;
  return (
    <>
      <Field label="Event">
        {(attributes) => (
          <select
            {...attributes}
            className="field"
            value={choice ?? ""}
            onChange={({ target }) => choose(target.value)}
          >
            {choice === null && <option value="">Loading …</option>}
            {deliveries.length > 0 && (
              <optgroup label="What came in">
                {deliveries.map(({ id, name, outcome, createdAt }) => (
                  <option key={id} value={`entry:${id}`}>
                    {[name, formatTime(createdAt), outcome ?? "under way"].filter((part) => part !== null).join(" · ")}
                  </option>
                ))}
              </optgroup>
            )}
            <Samples label="Samples that fit" samples={samples.fitting} />
            <Samples label={samples.fitting.length > 0 ? "Other samples" : "Samples"} samples={samples.others} />
            <option value="own">An event of your own</option>
          </select>
        )}
      </Field>
      {choice === "own" && (
        <Field label="Your event" hint="A JSON object, which the instructions see as event." error={problem}>
          {(attributes) => (
            <textarea
              {...attributes}
              rows={5}
              spellCheck={false}
              className="field font-mono text-xs"
              value={own}
              onChange={({ target }) => setOwn(target.value)}
            />
          )}
        </Field>
      )}
    </>
  );
}

function Samples({ label, samples }: { readonly label: string; readonly samples: readonly Sample[] }) {
  if (samples.length === 0) return null;
  return (
    <optgroup label={label}>
      {samples.map((sample) => (
        <option key={sample.name} value={`sample:${sample.name}`}>
          {sample.label}
        </option>
      ))}
    </optgroup>
  );
}
