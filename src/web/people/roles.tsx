import { roles } from "../../domain/people/user.ts";
import { usePeopleTexts } from "../texts/people.ts";

/** The rights of each role, from the least to the most. */
export function Roles() {
  const texts = usePeopleTexts();
  return (
    <section aria-labelledby="roles" className="space-y-2">
      <h2 id="roles" className="label">
        {texts.rolesTitle}
      </h2>
      <dl className="grid gap-px overflow-hidden rounded-lg border border-line bg-line text-sm sm:grid-cols-3">
        {roles.toReversed().map((role) => (
          <div key={role} className="bg-surface p-3">
            <dt className="font-medium">{texts.roles[role]}</dt>
            <dd className="text-muted">{texts.mays[role]}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
