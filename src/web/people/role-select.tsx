import type { ComponentProps } from "react";
import { roles, type Role } from "../../domain/people/user.ts";
import { usePeopleTexts } from "../texts/people.ts";

/** Chooses one of the roles. */
export function RoleSelect({
  value,
  onChoose,
  ...attributes
}: Omit<ComponentProps<"select">, "value" | "onChange"> & {
  readonly value: Role;
  readonly onChoose: (role: Role) => void;
}) {
  const texts = usePeopleTexts();
  return (
    <select
      {...attributes}
      value={value}
      onChange={({ target }) => {
        const chosen = roles.find((known) => known === target.value);
        if (chosen !== undefined) onChoose(chosen);
      }}
    >
      {roles.map((known) => (
        <option key={known} value={known}>
          {texts.roles[known]}
        </option>
      ))}
    </select>
  );
}
