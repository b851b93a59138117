import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { z } from "zod";
import type { invitationSchema } from "../../domain/people/invitation.ts";
import type { Role } from "../../domain/people/user.ts";
import { ButtonDialog } from "../elements/dialog.tsx";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { client } from "../query.ts";
import { currentLanguage } from "../texts/language.ts";
import { usePeopleTexts } from "../texts/people.ts";
import { RoleSelect } from "./role-select.tsx";

/** An invitation, with the link that is shown once. */
export type Invitation = z.infer<typeof invitationSchema>;

/** A button that opens the form of an invitation. */
export function Invite({ onInvited }: { onInvited: (invitation: Invitation) => void }) {
  const texts = usePeopleTexts();
  return (
    <ButtonDialog button={texts.invite} title={texts.inviteTitle}>
      {(close) => <InviteForm onInvited={(invitation) => close(() => onInvited(invitation))} />}
    </ButtonDialog>
  );
}

function InviteForm({ onInvited }: { onInvited: (invitation: Invitation) => void }) {
  const texts = usePeopleTexts();
  const [fields, setFields] = useState({ name: "", email: "" });
  const [role, setRole] = useState<Role>("member");
  const invite = useMutation({
    mutationFn: () => {
      const email = fields.email.trim();
      return client.user.invite({
        name: fields.name.trim(),
        role,
        language: currentLanguage(),
        ...(email !== "" && { email }),
      });
    },
    onSuccess: onInvited,
    // Don't keep the link in the cache.
    gcTime: 0,
  });
  const wrong = fieldOf(invite.error, ["name", "email", "role"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!invite.isPending) invite.mutate();
  };
  const field = (name: keyof typeof fields) => ({
    value: fields[name],
    onChange: ({ target }: { target: { value: string } }) => setFields({ ...fields, [name]: target.value }),
  });
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label={texts.name} error={wrong === "name" ? invite.error : null}>
        {(attributes) => <input {...attributes} autoComplete="off" className="field" {...field("name")} />}
      </Field>
      <Field label={texts.email} hint={texts.emailHint} error={wrong === "email" ? invite.error : null}>
        {(attributes) => (
          <input {...attributes} type="email" autoComplete="off" className="field" {...field("email")} />
        )}
      </Field>
      <Field label={texts.role} error={wrong === "role" ? invite.error : null}>
        {(attributes) => <RoleSelect {...attributes} className="field" value={role} onChoose={setRole} />}
      </Field>
      <FormEnd
        error={wrong === null ? invite.error : null}
        isPending={invite.isPending}
        verb={texts.makeLink}
        pendingVerb={texts.makingLink}
      />
    </form>
  );
}
