import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { PagedList } from "../elements/paged-list.tsx";
import { useTitle } from "../elements/use-title.ts";
import { Person } from "../people/person.tsx";
import { Roles } from "../people/roles.tsx";
import { client } from "../query.ts";
import { usePeopleTexts } from "../texts/people.ts";

/** Everybody who signed in by an identity provider, with the role of each. For admins. */
export function PeoplePage() {
  const texts = usePeopleTexts();
  const organization = useQuery({ queryKey: ["organization"], queryFn: () => client.organization.get() });
  useTitle(texts.title);
  return (
    <div className="space-y-6">
      <div className="space-y-1">
        <h1 className="text-xl font-semibold">{texts.title}</h1>
        {organization.data !== undefined && (
          <p className="max-w-3xl text-sm text-muted">{texts.about(organization.data.name)}</p>
        )}
      </div>
      <Roles />
      <PagedList
        label={texts.title}
        queryKey={["users", "pages"]}
        readPage={(cursor) => client.user.list({ limit: 50, cursor })}
        // Of those who were removed nothing is left to see.
        itemsOf={(page) => page.users.filter(({ issuer }) => issuer !== "")}
        empty={
          <>
            <p className="font-medium text-ink">{texts.empty.title}</p>
            <p className="mx-auto mt-1 max-w-md text-sm">{texts.empty.text}</p>
          </>
        }
      >
        {(user) => <Person key={user.id} user={user} />}
      </PagedList>
      <Link to="/settings" hash="keys" className="block w-fit text-sm text-accent underline">
        {texts.keys}
      </Link>
    </div>
  );
}
