import { useEffect, useId, useRef, useState, type MouseEvent, type ReactNode } from "react";
import { createPortal } from "react-dom";
import { useElementTexts } from "../texts/elements.ts";
import { Icon } from "./icon.tsx";

/**
 * A button that opens a dialog.
 * @param children gets a function that closes the dialog, and takes a function that then moves the focus; else it
 *   returns to the button
 */
export function ButtonDialog({
  button,
  of,
  className = "button",
  disabled = false,
  title,
  isWide = false,
  children,
}: {
  readonly button: string;
  /** Which of several objects the button is for, as screen readers say it. */
  readonly of?: string;
  readonly className?: string;
  readonly disabled?: boolean;
  readonly title: string;
  /** Whether it contains lines of code. */
  readonly isWide?: boolean;
  readonly children: (close: (moveFocus?: () => void) => void) => ReactNode;
}) {
  const [open, setOpen] = useState(false);
  // Set while it is about to close: what then moves the focus, if anything does.
  const [closing, setClosing] = useState<{ readonly moveFocus: (() => void) | undefined } | null>(null);
  function onClosed(): void {
    setOpen(false);
    setClosing(null);
    closing?.moveFocus?.();
  }
  return (
    <>
      <Opener button={button} of={of} className={className} disabled={disabled} open={open} onOpen={setOpen} />
      {open && (
        <Modal
          title={title}
          className={isWide ? "w-[min(52rem,94vw)]" : "w-[min(36rem,94vw)]"}
          closesOutside
          isClosing={closing !== null}
          onClosed={onClosed}
        >
          {children((moveFocus) => setClosing({ moveFocus }))}
        </Modal>
      )}
    </>
  );
}

/** Button that closes its dialog. */
export function CloseDialog() {
  const { cancel } = useElementTexts();
  return (
    <button type="button" className="button" onClick={closeAround}>
      {cancel}
    </button>
  );
}

/** A button for an action that can't be undone: asks for confirmation, and says what would be lost. */
export function ConfirmButton({
  button,
  of,
  disabled,
  question,
  children,
  onConfirm,
}: {
  readonly button: string;
  /** Which of several objects the button is for, as screen readers say it. */
  readonly of?: string;
  readonly disabled: boolean;
  readonly question: string;
  readonly children: ReactNode;
  readonly onConfirm: () => void;
}) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Opener button={button} of={of} className="button" disabled={disabled} open={open} onOpen={setOpen} />
      {open && (
        <Confirmation button={button} question={question} onConfirm={onConfirm} onClosed={() => setOpen(false)}>
          {children}
        </Confirmation>
      )}
    </>
  );
}

/** Asks whether something is to be done that can't be undone. */
export function Confirmation({
  button,
  question,
  children,
  onConfirm,
  onClosed,
}: {
  readonly button: string;
  readonly question: string;
  readonly children: ReactNode;
  readonly onConfirm: () => void;
  readonly onClosed: () => void;
}) {
  const description = useId();
  return (
    <Modal title={question} describedBy={description} className="w-[min(28rem,94vw)] space-y-3" onClosed={onClosed}>
      <p id={description} className="text-sm text-muted">
        {children}
      </p>
      <div className="flex justify-end gap-2 pt-1">
        <CloseDialog />
        <button
          type="button"
          className="button button-danger"
          onClick={(event) => {
            closeAround(event);
            onConfirm();
          }}
        >
          {button}
        </button>
      </div>
    </Modal>
  );
}

function closeAround(event: MouseEvent<HTMLElement>): void {
  event.currentTarget.closest("dialog")?.close();
}

function Opener({
  button,
  of,
  className,
  disabled,
  open,
  onOpen,
}: {
  readonly button: string;
  readonly of: string | undefined;
  readonly className: string;
  readonly disabled: boolean;
  readonly open: boolean;
  readonly onOpen: (open: true) => void;
}) {
  return (
    <button
      type="button"
      className={className}
      disabled={disabled}
      aria-haspopup="dialog"
      aria-expanded={open}
      onClick={() => onOpen(true)}
    >
      {button}
      {of !== undefined && <span className="sr-only"> {of}</span>}
    </button>
  );
}

/**
 * The browser's own modal dialog (https://html.spec.whatwg.org/multipage/interactive-elements.html#the-dialog-element): it keeps the focus
 * inside, closes by Escape, and gives the focus back. One that is described asks a question, which only an answer closes, or Escape.
 */
export function Modal({
  title,
  isTitleShown = true,
  describedBy,
  className,
  closesOutside = false,
  isClosing = false,
  onClosed,
  children,
}: {
  readonly title: string;
  /** False: the title is for screen readers alone, and the content makes its own margins. */
  readonly isTitleShown?: boolean;
  readonly describedBy?: string;
  readonly className: string;
  /** Whether a click beside the dialog closes it, too; browsers that do not know `closedby` yet leave it open. */
  readonly closesOutside?: boolean;
  /** Set to close it. */
  readonly isClosing?: boolean;
  /** Called when it was closed, and the focus is back where it was. */
  readonly onClosed: () => void;
  readonly children: ReactNode;
}) {
  const { close } = useElementTexts();
  const heading = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  useEffect(() => {
    if (isClosing) dialog.current?.close();
  }, [isClosing]);
  return createPortal(
    <dialog
      ref={dialog}
      role={describedBy === undefined ? undefined : "alertdialog"}
      aria-labelledby={heading}
      aria-describedby={describedBy}
      className="m-auto max-h-[92dvh] max-w-[94vw] overflow-y-auto outline-none rounded-lg border border-line bg-surface text-ink shadow-xl backdrop:bg-black/50"
      // An event of another opening, which came late, closes nothing.
      onClose={(event) => !event.currentTarget.open && onClosed()}
      {...(closesOutside && { closedby: "any" })}
    >
      <div className={`${isTitleShown ? "p-5" : ""} ${className}`}>
        <div className={isTitleShown ? "flex items-start gap-3" : "sr-only"}>
          <h2 id={heading} className="min-w-0 flex-1 text-lg font-semibold">
            {title}
          </h2>
          {closesOutside && isTitleShown && (
            <button type="button" className="button button-quiet px-1.5" aria-label={close} onClick={closeAround}>
              <Icon name="close" />
            </button>
          )}
        </div>
        {children}
      </div>
    </dialog>,
    document.body,
  );
}
