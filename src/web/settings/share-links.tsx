import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { PagedList } from "../elements/paged-list.tsx";
import { ShareRow } from "../elements/sessions/share-row.tsx";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { calls } from "./calls.ts";
import { Section } from "./section.tsx";

/** The share links of all sessions, each with a button that revokes it. */
export function ShareLinks() {
  const texts = useSettingsTexts().shares;
  const queries = useQueryClient();
  return (
    <Section id="shares" title={texts.title}>
      <p className="text-sm text-muted">{texts.about}</p>
      <PagedList
        label={texts.title}
        queryKey={["shares"]}
        readPage={calls.shares}
        itemsOf={(page) => page.shares}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(share) => (
          <ShareRow
            key={share.id}
            share={share}
            revoke={async () => {
              await client.session.revokeShare(share.sessionId, share.id);
              await queries.invalidateQueries({ queryKey: ["shares"] });
            }}
          >
            <Link
              to="/sessions/$id"
              params={{ id: share.sessionId }}
              className="font-medium wrap-anywhere hover:underline"
            >
              <bdi>{share.sessionTitle}</bdi>
            </Link>
          </ShareRow>
        )}
      </PagedList>
    </Section>
  );
}
