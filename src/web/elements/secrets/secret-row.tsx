import { useMutation } from "@tanstack/react-query";
import type { ComponentProps, ReactNode } from "react";
import type { Secret } from "../../../domain/environments/secret.ts";
import { useSecretTexts } from "../../texts/secrets.ts";
import { ChangeSecret } from "./change-secret.tsx";
import { ConfirmButton } from "../dialog.tsx";
import { ErrorText } from "../notice.tsx";
import { Ago } from "../time.tsx";

/** A secret in a list: its name and phases, with buttons that change and delete it. */
export function SecretRow({
  secret,
  about,
  remove: { button, question, about: consequence, run },
  save,
  reload,
}: {
  secret: Secret;
  /** Shown between the phases and the time. */
  about: ReactNode;
  remove: {
    readonly button: string;
    readonly question: string;
    readonly about: string;
    readonly run: () => Promise<unknown>;
  };
  save: ComponentProps<typeof ChangeSecret>["save"];
  reload: () => Promise<void>;
}) {
  const texts = useSecretTexts();
  const { name, phases, updatedAt } = secret;
  const remove = useMutation({ mutationFn: run, onSuccess: reload });
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 py-2 text-sm">
      <div className="min-w-0 flex-1 basis-48">
        <code className="font-medium break-all">{name}</code>
        <p className="text-muted">
          {phases.map((phase) => texts.phases[phase]).join(` ${texts.and} `)}
          {about} <Ago at={updatedAt} />
        </p>
      </div>
      <span className="flex gap-2">
        <ChangeSecret secret={secret} save={save} onSaved={reload} />
        <ConfirmButton
          button={button}
          of={name}
          disabled={remove.isPending}
          question={question}
          onConfirm={() => remove.mutate()}
        >
          {consequence}
        </ConfirmButton>
      </span>
      <ErrorText error={remove.error} />
    </li>
  );
}
