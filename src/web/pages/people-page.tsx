import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretOnce } from "../elements/secrets/secret-once.tsx";
import { useTitle } from "../elements/use-title.ts";
import { Invite, type Invitation } from "../people/invite.tsx";
import { Person } from "../people/person.tsx";
import { Roles } from "../people/roles.tsx";
import { client } from "../query.ts";
import { formatDay } from "../texts/formats.ts";
import { usePeopleTexts, type PeopleTexts } from "../texts/people.ts";

/** Milliseconds between two polls of the people, while the page shows a mail under way. */
const refreshMs = 3_000;

/** Everybody who signed in by an identity provider or was invited, with the role of each. For admins. */
export function PeoplePage() {
  const texts = usePeopleTexts();
  const organization = useQuery({ queryKey: ["organization"], queryFn: () => client.organization.get() });
  const queries = useQueryClient();
  const [invitation, setInvitation] = useState<Invitation | null>(null);
  const onInvited = (made: Invitation): void => {
    setInvitation(made);
    void queries.invalidateQueries({ queryKey: ["users"] });
  };
  useTitle(texts.title);
  return (
    <div className="space-y-6">
      <div className="space-y-1">
        <div className="flex flex-wrap items-center gap-3">
          <h1 className="mr-auto text-xl font-semibold">{texts.title}</h1>
          <Invite onInvited={onInvited} />
        </div>
        {organization.data !== undefined && (
          <p className="max-w-3xl text-sm text-muted">{texts.about(organization.data.name)}</p>
        )}
      </div>
      {invitation !== null && (
        <SecretOnce
          key={invitation.url}
          label={texts.linkOf(invitation.user.name)}
          about={`${texts.linkAbout(formatDay(invitation.expiresAt))} ${mailText(texts, invitation)}`}
          secret={invitation.url}
          onDone={() => setInvitation(null)}
        />
      )}
      <Roles />
      <PagedList
        label={texts.title}
        queryKey={["users", "pages"]}
        // While a link is being mailed, the list shows the progress.
        {...(invitation?.mailedTo != null && { refreshMs })}
        readPage={(cursor) => client.user.list({ limit: 50, cursor })}
        // Removed people have nothing left to show.
        itemsOf={(page) => page.users.filter(({ issuer }) => issuer !== "")}
        empty={
          <>
            <p className="font-medium text-ink">{texts.empty.title}</p>
            <p className="mx-auto mt-1 max-w-md text-sm">{texts.empty.text}</p>
          </>
        }
      >
        {(user) => <Person key={user.id} user={user} onInvited={onInvited} />}
      </PagedList>
      <Link to="/settings" hash="keys" className="block w-fit text-sm text-accent underline">
        {texts.keys}
      </Link>
    </div>
  );
}

/** Whether a link is mailed; if not, whether that is for want of a mail server. */
function mailText(texts: PeopleTexts, { mailedTo, user: { email } }: Invitation): string {
  if (mailedTo !== null) return texts.mailed(mailedTo);
  return email === null ? "" : texts.notMailed;
}
