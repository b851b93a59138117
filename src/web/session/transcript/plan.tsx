import { useSessionTexts } from "../../texts/session.ts";
import type { Plan } from "../view/view.ts";

const marks: Record<Plan[number]["status"], string> = { pending: "○", in_progress: "◐", completed: "✓" };
const colours: Record<Plan[number]["status"], string> = {
  pending: "text-muted",
  in_progress: "text-accent",
  completed: "text-good",
};

/** The agent's plan, as a list in which what is done is ticked. */
export function PlanList({ plan }: { plan: Plan }) {
  const texts = useSessionTexts().plan;
  const done = plan.filter(({ status }) => status === "completed").length;
  return (
    <section aria-label={texts.title} className="card p-3 text-sm">
      <div className="mb-2 flex items-center gap-3">
        <h2 className="label">{texts.title}</h2>
        <progress aria-label={texts.done} value={done} max={plan.length} className="progress h-1 flex-1" />
        <span className="text-xs text-muted tabular-nums">{texts.of(done, plan.length)}</span>
      </div>
      <ol className="space-y-0.5">
        {plan.map(({ text, status }, index) => (
          <li key={index} className="flex gap-2">
            <span aria-hidden className={`w-4 text-center ${colours[status]}`}>
              {marks[status]}
            </span>
            <span
              className={
                status === "completed"
                  ? "text-muted line-through decoration-line"
                  : status === "in_progress"
                    ? "font-medium"
                    : ""
              }
            >
              <bdi>{text}</bdi>
              <span className="sr-only"> ({texts.states[status]})</span>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
