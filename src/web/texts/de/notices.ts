import type { NoticeTexts } from "../en/notices.ts";

const german: NoticeTexts = {
  title: "Benachrichtigungen",
  about: "Was du erfährst, während du woanders bist: per Push an deine Browser und per E-Mail an deine Adresse.",
  nobody:
    "Um etwas zu erfahren, melde dich als du selbst an. Ein Schlüssel, der niemandem gehört, hat keine Benachrichtigungen.",
  test: "Mir eine zur Probe senden",
  testing: "Wird gesendet …",
  tested: (count) => (count === 1 ? "Eine ist unterwegs." : `${count} sind unterwegs.`),
  choices: "Was du erfährst",
  kind: "Wann",
  channels: { push: "Push", email: "E-Mail" },
  kinds: {
    "session.completed": "Eine Session ist fertig",
    "session.failed": "Eine Session ist gescheitert und wird nicht von selbst wiederholt",
    "session.waiting": "Eine Session wartet auf ein Budget",
    "pullRequest.opened": "Ein Pull-Request wartet auf ein Review",
    "pullRequest.conflicted": "Ein Pull-Request hat Konflikte mit seinem Ziel-Branch",
    "pullRequest.merged": "Ein Pull-Request wurde gemergt",
    "automation.paused": "Eine Automation wurde pausiert, weil ihre Läufe scheiterten",
    "automation.silent": "Eine Automation hätte auslösen sollen und tat es nicht",
  },
  scopes: { off: "Aus", mine: "Meine", all: "Alle" },
  scopesAbout:
    "Meine: Sessions, um die du gebeten hast, und Automationen, die du angelegt hast. Alle: die der ganzen Organisation.",
  mailTo: (address) => `E-Mails gehen an ${address}.`,
  noMailServer: "Es gehen keine E-Mails: Für diesen Server ist kein Mailserver eingerichtet.",
  noAddress: "Dich erreichen keine E-Mails: Kein Identitätsanbieter hat eine Adresse von dir bestätigt.",
  save: "Auswahl speichern",
  saving: "Wird gespeichert …",
  saved: "Gespeichert",
  browsers: "Browser, die deine Benachrichtigungen zeigen",
  noBrowsers: "Noch keine: Dir wird nichts per Push geschickt.",
  unknownBrowser: "Unbekannter Browser",
  here: "dieser Browser",
  since: "seit",
  last: "zuletzt benachrichtigt",
  remove: "Entfernen",
  removeOf: (browser) => `${browser} entfernen?`,
  removeAbout: "Dorthin geht kein Push mehr. Von dort lässt sich der Browser wieder hinzufügen.",
  subscribe: "Push an diesen Browser",
  subscribing: "Der Browser wird gefragt …",
  unsubscribe: "Kein Push mehr an diesen Browser",
  untilStopped: "Hierher geht Push, bis du das beendest oder dich hier abmeldest.",
  unanswered: "Der Browser hat keine Benachrichtigungen erlaubt. Versuche es noch einmal und wähle „Zulassen“.",
  failed: (reason) => `Der Browser hat seinen Push-Dienst nicht erreicht: ${reason}`,
  unable: {
    insecure: "An diesen Browser geht hier kein Push: Er muss Offstage unter einer Adresse mit https:// öffnen.",
    unsupported: "Dieser Browser kann kein Push. Ein anderer kann es, oder eine neuere Version von ihm.",
    homeScreen:
      "Für Benachrichtigungen auf einem iPhone oder iPad füge Offstage mit dem Teilen-Knopf des Browsers dem Home-Bildschirm hinzu und öffne es von dort.",
    refused:
      "In diesem Browser sind Benachrichtigungen blockiert. Erlaube sie in seinen Einstellungen für diese Seite, beim Symbol neben der Adresse, und komm zurück.",
  },
};
export default german;
