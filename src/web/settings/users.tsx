import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useId } from "react";
import { roles, type Role, type User } from "../../domain/people/user.ts";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";

/** Who signed in by an identity provider, with the role of each. */
export function Users() {
  const users = useQuery({ queryKey: ["users"], queryFn: () => client.user.list({ limit: 100 }) });
  return (
    <section aria-labelledby="users" className="card space-y-4 p-4">
      <h2 id="users" className="font-medium">
        Users
      </h2>
      <p className="text-sm text-muted">Who signed in by an identity provider. A change counts at once.</p>
      <ErrorText error={users.error} />
      {users.data?.users.length === 0 && <p className="text-sm text-muted">Nobody so far.</p>}
      {users.data !== undefined && users.data.users.length > 0 && (
        <ul aria-label="Users" className="divide-y divide-line text-sm">
          {users.data.users.map((user) => (
            <UserRow key={user.id} user={user} />
          ))}
        </ul>
      )}
    </section>
  );
}

function UserRow({ user }: { user: User }) {
  const queries = useQueryClient();
  const id = useId();
  const update = useMutation({
    mutationFn: (change: { role?: Role; disabled?: boolean }) => client.user.update(user.id, change),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["users"] }),
  });
  const isDisabled = user.disabledAt !== null;
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
      <div className="min-w-0 flex-1 basis-full sm:basis-48">
        <span className={`font-medium wrap-anywhere ${isDisabled ? "text-muted line-through" : ""}`}>{user.name}</span>
        <p className="wrap-anywhere text-muted">
          {user.email ?? user.issuer} · signed in <Ago at={user.lastSignInAt} />
        </p>
      </div>
      <label htmlFor={id} className="sr-only">
        Role of {user.name}
      </label>
      <select
        id={id}
        className="field w-auto"
        value={user.role}
        disabled={update.isPending}
        onChange={({ target }) => {
          const role = roles.find((known) => known === target.value);
          if (role !== undefined) update.mutate({ role });
        }}
      >
        {roles.map((role) => (
          <option key={role}>{role}</option>
        ))}
      </select>
      <button
        type="button"
        className="button"
        disabled={update.isPending}
        onClick={() => update.mutate({ disabled: !isDisabled })}
      >
        {isDisabled ? "Enable" : "Disable"}
        <span className="sr-only"> {user.name}</span>
      </button>
      <ErrorText error={update.error} />
    </li>
  );
}
