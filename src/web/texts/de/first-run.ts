import type { FirstRunTexts } from "../en/first-run.ts";

const german: FirstRunTexts = {
  title: "Dein erster Pull-Request",
  about: "Was es dazu braucht, und was davon da ist.",
  done: "Erledigt",
  open: "Zu tun",
  unknown: "Wird nachgesehen",
  key: {
    title: "Der Schlüssel eines Modells",
    done: (model) => `Agenten fragen ${model}, wenn nichts anderes gesagt ist.`,
    doneWithout: "Ein Agent hat, was er braucht.",
    remedy: "Der Server liest ihn beim Start aus seiner Umgebung.",
  },
  agent: {
    title: "Ein Agent, der arbeitet",
    done: (name) => `${name} übernimmt Sessions, die keinen anderen nennen.`,
    first: "Er arbeitet, sobald ein Schlüssel da ist: der namens Basic braucht sonst nichts.",
    lacks: (name, problem) => `${name}: ${problem}`,
    other: "Bis dahin lässt sich für die Session ein anderer wählen.",
  },
  forge: {
    title: "Eine Forge, die Pull-Requests annimmt",
    done: (forges) => `Verbunden: ${forges}.`,
    none: "Keine ist verbunden.",
    connect: "Eine Forge verbinden",
    orToken: ", oder den Server mit GITHUB_TOKEN oder GITLAB_TOKEN starten.",
    askAdmin: "Ein Admin verbindet sie in den Einstellungen.",
    lacks: (forge, problem) => `${forge}: ${problem}`,
    toSettings: "Zu den Einstellungen",
  },
  session: {
    title: "Eine erste Session",
    write: "Wähle oben das Repository und sag, was getan werden soll, etwa:",
    example: "Ergänze im README einen Abschnitt darüber, wie man die Tests startet.",
    started: "Sie ist gestartet.",
    open: "Öffnen",
  },
  pullRequest: {
    title: "Ihr Pull-Request",
    later: "Er wird geöffnet, sobald die Arbeit der Session committet ist.",
    underWay: "Die Session ist in Arbeit.",
    waiting: "Die Session wartet auf jemanden.",
    nothing: "Die Session endete ohne Änderung. Bitte sie um eine, oder starte eine andere.",
    cancelled: "Die Session wurde abgebrochen. Starte eine andere.",
    opened: "Lies ihn, kommentiere ihn, führe ihn zusammen:",
    next: "Was von jetzt an von selbst beginnt, ist eine Automation:",
    automate: "Eine anlegen",
  },
};
export default german;
