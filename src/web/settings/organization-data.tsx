import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { EraseOrganization } from "../elements/erase-organization.tsx";
import { useSettingsTexts } from "../texts/settings.ts";
import { calls, exportAddress } from "./calls.ts";
import { Section } from "./section.tsx";

/** All data of the organization: exported as an archive, or erased for ever. */
export function OrganizationData({ name }: { name: string }) {
  const texts = useSettingsTexts().data;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const onErased = async (): Promise<void> => {
    // Whatever else is not saved is not asked about: there is nothing any more to save it to.
    await navigate({ to: "/sign-in", ignoreBlocker: true });
    queries.clear();
  };
  return (
    <Section id="data" title={texts.title}>
      <div className="space-y-2 text-sm text-muted">
        <p>{texts.exportAbout}</p>
        <a href={exportAddress} download className="button">
          {texts.export}
        </a>
      </div>
      <div className="space-y-2 text-sm text-muted">
        <p>{texts.eraseAbout}</p>
        <EraseOrganization button={texts.erase} name={name} isOwn erase={calls.erase} onErased={onErased} />
      </div>
    </Section>
  );
}
