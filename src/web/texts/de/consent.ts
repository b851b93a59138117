import type { ConsentTexts } from "../en/consent.ts";

const german: ConsentTexts = {
  title: "Darf ein Programm für dich handeln?",
  question: { before: "Darf", after: "für dich handeln?" },
  loading: "Lädt …",
  unknown: "Es nennt sich selbst so; niemand bürgt für den Namen.",
  describedBy: "Beschrieben wird es von",
  toProgram: "Die Antwort geht an ein Programm auf diesem Gerät",
  ifStarted: "Mach nur weiter, wenn du gerade eines gestartet hast, das darum bittet.",
  toSite: "Die Antwort geht an",
  ifTrusted: "Mach nur weiter, wenn du dieser Website vertraust.",
  could: "Es könnte dann:",
  couldByTools: "Es könnte dann, mit den Werkzeugen des MCP-Servers:",
  nothing: "Von dem, worum es bittet, darfst du selbst nichts.",
  scopes: {
    read: "Sessions mit ihren Änderungen und Ereignissen, Automationen und Repositories sehen",
    write: "Sessions starten, lenken und abbrechen, und Automationen ändern",
    trigger: "Automationen starten",
    admin: "Alles andere tun, was ein Admin darf: Budgets, Geheimnisse, Schlüssel, Benutzer und Einstellungen",
  },
  end: "Du kannst das jederzeit in den Einstellungen unter „Programme“ beenden.",
  allow: "Erlauben",
  refuse: "Ablehnen",
  goingBack: "Zurück zum Programm …",
  problem: {
    title: "Nichts wurde erlaubt",
    none: "Ein Programm hat dich hierher geschickt, ohne zu sagen, wozu.",
    sentences: {
      client:
        "Das Programm, das dich hierher geschickt hat, ist diesem Server nicht bekannt, oder seine Beschreibung lässt sich nicht lesen. Lass es sich neu registrieren, oder frag, wer es macht.",
      redirect:
        "Das Programm will, dass du zu einer Adresse geschickt wirst, die es nicht registriert hat. Nichts wurde erlaubt. Lass es sich neu registrieren, oder frag, wer es macht.",
    },
  },
};
export default german;
