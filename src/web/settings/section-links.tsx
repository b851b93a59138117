import { createLink } from "@tanstack/react-router";
import { useEffect, useRef, type ComponentProps } from "react";
import { useSettingsTexts } from "../texts/settings.ts";

/** The way through the settings: a list beside them, or above them a row that scrolls if there is no room beside. */
export function SectionLinks({
  sections,
  current,
  onOpen,
}: {
  sections: readonly { readonly id: string; readonly title: string }[];
  /** Id of the section in view. */
  current: string | undefined;
  onOpen: (id: string) => void;
}) {
  const texts = useSettingsTexts();
  const list = useCurrentInSight(current);
  return (
    <nav
      aria-label={texts.sections}
      className="section-links sticky top-12 z-10 -mx-4 border-b border-line bg-ground md:top-0 md:-mx-6 lg:top-5 lg:mx-0 lg:border-b-0"
    >
      <ul
        ref={list}
        className="relative flex gap-1 overflow-auto [scrollbar-width:thin] px-4 py-1.5 text-sm md:px-6 lg:max-h-[calc(100dvh-2.5rem)] lg:flex-col lg:p-0.5"
      >
        {sections.map(({ id, title }) => (
          <li key={id} className="shrink-0">
            <SectionLink to="/settings" search hash={id} isCurrent={id === current} onClick={() => onOpen(id)}>
              {title}
            </SectionLink>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Marked by what is in view: a link marks itself by the address, which does not change while the user scrolls. */
const SectionLink = createLink(function Anchor({
  isCurrent,
  children,
  ...given
}: ComponentProps<"a"> & { isCurrent: boolean }) {
  return (
    <a
      {...given}
      aria-current={isCurrent ? "true" : undefined}
      className="flex min-h-8 items-center rounded-md px-2.5 py-1 whitespace-nowrap text-muted hover:bg-hover hover:text-ink aria-[current=true]:bg-hover aria-[current=true]:font-medium aria-[current=true]:text-ink lg:whitespace-normal pointer-coarse:min-h-10"
    >
      {children}
    </a>
  );
});

/** Scrolls the list, and nothing else, so that the link of the section in view is in sight. */
function useCurrentInSight(current: string | undefined) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    const link = list.current?.querySelector<HTMLElement>(`[href$="#${current}"]`);
    if (list.current === null || link == null) return;
    const { clientWidth, clientHeight } = list.current;
    list.current.scrollTo({
      left: link.offsetLeft - (clientWidth - link.offsetWidth) / 2,
      top: link.offsetTop - (clientHeight - link.offsetHeight) / 2,
    });
  }, [current]);
  return list;
}
