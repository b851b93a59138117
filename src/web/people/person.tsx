import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useId } from "react";
import { invitationIssuer, type Role, type User } from "../../domain/people/user.ts";
import { announce } from "../elements/announce.tsx";
import { Badge } from "../elements/badge.tsx";
import { ConfirmButton } from "../elements/dialog.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { Ago, Day } from "../elements/time.tsx";
import { client, useMe } from "../query.ts";
import { currentLanguage } from "../texts/language.ts";
import { usePeopleTexts, type PeopleTexts } from "../texts/people.ts";
import type { Invitation } from "./invite.tsx";
import { RoleSelect } from "./role-select.tsx";

/** An admin's change of a user. */
type Change = { readonly role: Role } | { readonly disabled: boolean } | "remove";

/** One person: who they are, when they were seen, their sessions, and what an admin may change. */
export function Person({ user, onInvited }: { user: User; onInvited: (invitation: Invitation) => void }) {
  const texts = usePeopleTexts();
  const me = useMe();
  const queries = useQueryClient();
  const { id, name, email, issuer, role, createdAt, lastSeenAt, disabledAt, invitationMail } = user;
  const isDisabled = disabledAt !== null;
  const isByLink = issuer === invitationIssuer;
  const change = useMutation({
    mutationFn: (to: Change) => (to === "remove" ? client.user.erase(id) : client.user.update(id, to)),
    onSuccess: (_, to) => {
      announce(doneText(texts, name, to));
      // A change of the user's own role or sign-in changes what they may do from now on.
      return Promise.all([
        queries.invalidateQueries({ queryKey: ["users"] }),
        queries.invalidateQueries({ queryKey: ["me"] }),
      ]);
    },
  });
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 px-4 py-3 text-sm">
      <div className="min-w-0 flex-1 basis-64">
        <p className="flex flex-wrap items-center gap-x-2">
          <bdi className={`font-medium wrap-anywhere ${isDisabled ? "text-muted" : ""}`}>{name}</bdi>
          {me.data?.userId === id && <span className="text-muted">{texts.you}</span>}
          {isDisabled && <Badge tone="muted" label={texts.disabled} />}
        </p>
        <p className="wrap-anywhere text-muted">{email ?? (isByLink ? texts.byLink : issuer)}</p>
        <p className="text-xs text-muted">
          {lastSeenAt === null ? (
            <>
              {texts.invited} <Ago at={createdAt} /> · {texts.notSeen}
              {invitationMail !== null && ` · ${texts.mail[invitationMail.status]}`}
            </>
          ) : (
            <>
              {texts.seen} <Ago at={lastSeenAt} /> · {texts.since} <Day at={createdAt} />
            </>
          )}
        </p>
        {lastSeenAt === null && invitationMail?.problem != null && (
          <p className={`text-xs wrap-anywhere ${invitationMail.status === "dead" ? "text-bad" : "text-warn"}`}>
            {invitationMail.problem}
          </p>
        )}
      </div>
      <div className="grid w-full grid-cols-2 items-center gap-2 sm:flex sm:w-auto">
        <Link to="/" search={{ by: id }} className="button">
          {texts.sessions}
          <span className="sr-only"> {texts.of(name)}</span>
        </Link>
        {isByLink && !isDisabled && <LinkAgain user={user} onInvited={onInvited} />}
        <RoleOf
          user={{ name, role }}
          isPending={change.isPending}
          onChange={(chosen) => change.mutate({ role: chosen })}
        />
        {isDisabled ? (
          <button
            type="button"
            className="button"
            disabled={change.isPending}
            onClick={() => change.mutate({ disabled: false })}
          >
            {texts.enable}
            <span className="sr-only"> {name}</span>
          </button>
        ) : (
          <ConfirmButton
            button={texts.disable}
            of={name}
            disabled={change.isPending}
            question={texts.disableQuestion(name)}
            onConfirm={() => change.mutate({ disabled: true })}
          >
            {texts.disableAbout}
          </ConfirmButton>
        )}
        <ConfirmButton
          button={texts.remove}
          of={name}
          disabled={change.isPending}
          question={texts.removeQuestion(name)}
          onConfirm={() => change.mutate("remove")}
        >
          {texts.removeAbout}
        </ConfirmButton>
      </div>
      {change.error !== null && (
        <div className="basis-full">
          <ErrorText error={change.error} />
        </div>
      )}
    </li>
  );
}

/** Makes another link for a person whom no identity provider signs in. */
function LinkAgain({ user: { id, name }, onInvited }: { user: User; onInvited: (invitation: Invitation) => void }) {
  const texts = usePeopleTexts();
  const again = useMutation({
    mutationFn: () => client.user.inviteAgain(id, { language: currentLanguage() }),
    onSuccess: onInvited,
    // Don't keep the link in the cache.
    gcTime: 0,
  });
  return (
    <>
      <ConfirmButton
        button={texts.newLink}
        of={name}
        disabled={again.isPending}
        question={texts.newLinkQuestion(name)}
        onConfirm={() => again.mutate()}
      >
        {texts.newLinkAbout}
      </ConfirmButton>
      <ErrorText error={again.error} />
    </>
  );
}

function RoleOf({
  user: { name, role },
  isPending,
  onChange,
}: {
  user: Pick<User, "name" | "role">;
  isPending: boolean;
  onChange: (role: Role) => void;
}) {
  const texts = usePeopleTexts();
  const id = useId();
  return (
    <>
      <label htmlFor={id} className="sr-only">
        {texts.roleOf(name)}
      </label>
      <RoleSelect id={id} className="field sm:w-auto" value={role} disabled={isPending} onChoose={onChange} />
    </>
  );
}

function doneText(texts: PeopleTexts, name: string, to: Change): string {
  if (to === "remove") return texts.isRemoved(name);
  if ("role" in to) return texts.roleChanged(name, texts.roles[to.role]);
  return to.disabled ? texts.isDisabled(name) : texts.isEnabled(name);
}
