import { Field } from "../elements/field.tsx";
import { useAutomationTexts } from "../texts/automations.ts";
import { useElementTexts } from "../texts/elements.ts";
import { formatTime } from "../texts/formats.ts";
import type { Sample } from "./samples.ts";
import type { ChosenEvent } from "./use-chosen-event.ts";

/** Chooses the event that a draft is tried with: one that came in, a sample, or one that is written here. */
export function EventField({ event }: { readonly event: ChosenEvent }) {
  const { choice, choose, deliveries, samples, own, setOwn, problem } = event;
  const { event: texts, outcomes, underWay } = useAutomationTexts();
  const { loading } = useElementTexts();
  return (
    <>
      <Field label={texts.label}>
        {(attributes) => (
          <select
            {...attributes}
            className="field"
            value={choice ?? ""}
            onChange={({ target }) => choose(target.value)}
          >
            {choice === null && <option value="">{loading}</option>}
            {deliveries.length > 0 && (
              <optgroup label={texts.cameIn}>
                {deliveries.map(({ id, name, outcome, createdAt }) => (
                  <option key={id} value={`entry:${id}`}>
                    {[name, formatTime(createdAt), outcome === null ? underWay : outcomes[outcome]]
                      .filter((part) => part !== null)
                      .join(" · ")}
                  </option>
                ))}
              </optgroup>
            )}
            <Samples label={texts.fitting} samples={samples.fitting} />
            <Samples label={samples.fitting.length > 0 ? texts.others : texts.samples} samples={samples.others} />
            <option value="own">{texts.own}</option>
          </select>
        )}
      </Field>
      {choice === "own" && (
        <Field label={texts.ownLabel} hint={texts.hint} error={problem}>
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
