import type { OrganizationTexts } from "../en/organizations.ts";

const german: OrganizationTexts = {
  organization: "Organisation",
  yours: "Deine Organisationen",
  yoursAbout:
    "In jeder davon hast du ein Konto. Was du siehst und tust, gehört immer zu einer von ihnen. Ein Wechsel gilt für alle Fenster dieses Browsers und ist für die nächste Anmeldung gemerkt.",
  here: "hier bist du",
  switch: "Wechseln",
  switchTo: (name) => `Zu ${name} wechseln`,
  roles: { admin: "Admin", member: "Mitglied", viewer: "Leser" },
  all: "Organisationen",
  allAbout:
    "Jede hat eigene Personen, Schlüssel, Repositories, Sessions und Einstellungen und sieht nichts von den anderen. Gemeinsam sind ihnen die Worker und Modelle dieses Servers; seinen Zugang zu Forges, Tokens und SSH-Schlüssel, haben nur die, die ihn nutzen.",
  none: "Es gibt keine Organisation.",
  own: "die des Servers",
  usesForges: "nutzt die Forges des Servers",
  usesForgesOf: (name) => `${name} nutzt die Forges des Servers`,
  lend: "Sie nutzt den Zugang des Servers zu Forges",
  lendHint:
    "Mit den Tokens und SSH-Schlüsseln des Betreibers erreichen ihre Mitglieder alle Repositories, die diese erreichen. Ohne verbindet sie eigene Forges.",
  members: (count) => (count === 1 ? "1 Mitglied" : `${count} Mitglieder`),
  sessions: (count, isAll) =>
    isAll ? (count === 1 ? "1 Session" : `${count} Sessions`) : `mehr als ${count} Sessions`,
  lastSession: "die neueste",
  since: "seit",
  create: "Neue Organisation",
  createTitle: "Neue Organisation",
  name: "Ihr Name",
  first: "Der erste Admin",
  ways: { invite: "wird eingeladen", key: "bekommt von mir einen API-Schlüssel" },
  adminName: "Name des Admins",
  email: "E-Mail-Adresse (freiwillig)",
  emailHint: "Dorthin geht der Link, wenn dieser Server einen Mailserver hat.",
  making: "Wird angelegt …",
  makeVerb: "Anlegen",
  linkFor: (admin, organization) => `Link für ${admin}, den Admin von ${organization}`,
  linkAbout: (until) =>
    `Er meldet einen Browser als diese Person an, einmal, bis ${until}. Schick ihn sonst niemandem. Er wird nur jetzt gezeigt.`,
  mailed: (address) => `Er geht auch per E-Mail an ${address}.`,
  keyOf: (organization) => `Admin-Schlüssel von ${organization}`,
  keyAbout: "Wer ihn hat, darf in dieser Organisation alles. Er wird nur jetzt gezeigt.",
  erase: "Löschen",
};
export default german;
