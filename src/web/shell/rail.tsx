import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import icon from "../icon.svg";
import { Icon } from "../elements/icon.tsx";
import { useShellTexts } from "../texts/shell.ts";
import { usePages } from "./pages.ts";
import { RailButton } from "./rail-button.tsx";

const RailEnd = lazy(() => import("./rail-end.tsx").then(({ RailEnd: component }) => ({ default: component })));

/** Overlays that can be opened over every page. */
export type Overlay = "palette" | "help" | "display";

/** Id of the rail, for what opens it. */
export const railId = "rail";

/** The name, which leads home. */
export function Brand({ className = "" }: { className?: string }) {
  return (
    <Link to="/" className={`flex items-center gap-2 px-1 font-semibold ${className}`}>
      <img src={icon} alt="" className="size-6" />
      <span className={className === "" ? "" : "rail-word"}>Offstage</span>
    </Link>
  );
}

/** The navigation, beside the content; on a phone it opens over it. */
export function Rail({ onOpen }: { onOpen: (overlay: Overlay) => void }) {
  const texts = useShellTexts();
  return (
    <nav aria-label={texts.navigation} id={railId} popover="auto" className="rail">
      <Brand className="mb-2 min-h-8 md:max-[72rem]:justify-center" />
      <RailButton icon="search" word={texts.searchShort} keys="Ctrl K" onClick={() => onOpen("palette")} />
      <div className="mt-2 flex flex-1 flex-col gap-1">
        {usePages().map(({ to, name, icon: picture, isSeen }) => (
          <Link
            key={to}
            to={to}
            className={`rail-item ${isSeen ? "" : "invisible"}`}
            activeOptions={{ exact: to === "/", includeSearch: false }}
          >
            <Icon name={picture} />
            <span className="rail-word">{texts.pages[name]}</span>
          </Link>
        ))}
        <a href="/reference" className="rail-item mt-auto">
          <Icon name="reference" />
          <span className="rail-word">{texts.pages.reference}</span>
        </a>
      </div>
      <RailButton icon="display" word={texts.display} onClick={() => onOpen("display")} />
      <RailButton icon="help" word={texts.shortcutsShort} keys="?" onClick={() => onOpen("help")} />
      <Suspense fallback={<div className="rail-item" />}>
        <RailEnd />
      </Suspense>
    </nav>
  );
}
