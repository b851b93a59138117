import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useId } from "react";
import type { OwnOrganization } from "../../domain/people/me.ts";
import { announce } from "../elements/announce.tsx";
import { Icon } from "../elements/icon.tsx";
import { leavePush } from "../push.ts";
import { client, useMe } from "../query.ts";
import { useOrganizationTexts } from "../texts/organizations.ts";
import { useShellTexts } from "../texts/shell.ts";
import { RailButton } from "./rail-button.tsx";
import { followSwitches, switchOrganization } from "../switch-organization.ts";

/**
 * The last of the rail: the way out, or, for whoever is of several organizations, a menu that leads to the others and out. It has one place,
 * which is empty until that is known: nothing moves.
 */
export function RailEnd() {
  const { isPending, data: me } = useMe();
  useEffect(followSwitches, []);
  const organizations = me?.organizations ?? [];
  const here = organizations.find(({ id }) => id === me?.orgId);
  if (isPending) return <div className="rail-item" />;
  if (here === undefined || organizations.length < 2) return <SignOut />;
  return <Organizations all={organizations} here={here} />;
}

function Organizations({ all, here }: { all: readonly OwnOrganization[]; here: OwnOrganization }) {
  const texts = useOrganizationTexts();
  const id = useId();
  const change = useMutation({
    mutationFn: (organizationId: string) => switchOrganization(organizationId),
    onError: ({ message }) => announce(message),
  });
  return (
    <>
      <button
        type="button"
        className="rail-item"
        popoverTarget={id}
        aria-label={`${texts.organization}: ${here.name}`}
        title={here.name}
      >
        <Icon name="people" />
        <bdi className="rail-word">{here.name}</bdi>
      </button>
      <div
        id={id}
        popover="auto"
        className="popover m-1 w-60 p-1 [position-area:block-start_span-inline-end] [position-try-fallbacks:flip-inline,flip-block]"
      >
        <ul aria-label={texts.yours} className="max-h-[60dvh] overflow-y-auto">
          {all.map((organization) => (
            <li key={organization.id}>
              <button
                type="button"
                className="rail-item w-full"
                aria-current={organization.id === here.id ? "true" : undefined}
                aria-label={organization.id === here.id ? undefined : texts.switchTo(organization.name)}
                disabled={change.isPending}
                onClick={({ currentTarget }) => {
                  currentTarget.closest<HTMLElement>("[popover]")?.hidePopover();
                  if (organization.id !== here.id) change.mutate(organization.id);
                }}
              >
                <Icon name={organization.id === here.id ? "check" : "other"} />
                <bdi className="min-w-0 truncate">{organization.name}</bdi>
              </button>
            </li>
          ))}
        </ul>
        <hr className="my-1 border-line" />
        <SignOut />
      </div>
    </>
  );
}

function SignOut() {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const texts = useShellTexts();
  const signOut = useMutation({
    mutationFn: async () => {
      // Whatever comes of that, the sign-in ends.
      await leavePush().catch(() => null);
      return client.login.delete();
    },
    onSuccess: async () => {
      await navigate({ to: "/sign-in" });
      queries.clear();
    },
    onError: ({ message }) => announce(message),
  });
  return <RailButton icon="leave" word={texts.signOut} onClick={() => signOut.mutate()} />;
}
