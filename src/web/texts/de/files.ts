import type { FilesTexts } from "../en/files.ts";

const german: FilesTexts = {
  tree: "Dateien des Arbeitsbereichs",
  notShown: "Die Dateien können nicht gezeigt werden",
  noFiles: "Der Arbeitsbereich hat keine Dateien.",
  noFilesIn: "Leer",
  loading: "Lädt …",
  failed: (why) => `Konnte nicht geladen werden: ${why}. Noch einmal versuchen`,
  more: "Mehr zeigen",
  cut: "Hier sind mehr Dateien, als aufgeführt werden.",
  back: "Alle Dateien",
  changes: { added: "neu", changed: "geändert" },
  types: { folder: "Ordner", file: "Datei", link: "Verweis", submodule: "Submodul", other: "keine Datei" },
  unnamed: "Ihr Name ist kein Text, mit dem nach ihr gefragt werden könnte.",
  from: {
    checkpoint: "Wie der letzte Sicherungspunkt sie hat, während der Agent arbeitet",
    work: "Wie der Agent sie hinterlassen hat",
    pushed: "Wie sie hochgeladen wurde",
    start: "Wie sie am Anfang der Session war",
  },
  copy: "die Datei",
  empty: "Die Datei ist leer.",
  noText: "Das ist kein Text.",
  leadsTo: "Ein Verweis auf",
  partly: "Nur das erste MiB der Datei kann gezeigt werden.",
  end: "Das ist alles.",
  of: (name) => `Inhalt von ${name}`,
};
export default german;
