import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { SessionRow } from "../elements/sessions/session-row.tsx";
import { client } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { Loaded, Section } from "./section.tsx";

const refreshMs = 3_000;
const shown = 5;

/** The last sessions of a repository, and ways to all of them. */
export function RecentSessions({ id }: { id: string }) {
  const texts = useRepositoryTexts();
  const sessions = useQuery({
    queryKey: ["sessions", "of repository", id],
    queryFn: () => client.session.list({ repositoryId: id, limit: shown }),
    refetchInterval: refreshMs,
  });
  return (
    <Section
      title={texts.sessions.title}
      action={
        <span className="flex flex-wrap gap-x-4 text-sm">
          <Link to="/" search={{ repository: id }} className="text-accent underline">
            {texts.sessions.all}
          </Link>
          <Link to="/insight" search={{ repository: id }} className="text-accent underline">
            {texts.sessions.insight}
          </Link>
        </span>
      }
    >
      <Loaded query={sessions}>
        {({ sessions: found }) =>
          found.length === 0 ? (
            <p className="text-sm text-muted">{texts.noSessions}</p>
          ) : (
            <ul aria-label={texts.sessions.list} className="divide-y divide-line border-y border-line">
              {found.map((session) => (
                <li key={session.id}>
                  <SessionRow session={session} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}
