import type { PeopleTexts } from "../en/people.ts";

const german: PeopleTexts = {
  title: "Personen",
  about: (organization) =>
    `Wer sich bei der Organisation ${organization} angemeldet hat oder eingeladen wurde. Wen der Betreiber des Servers über den Identity Provider einlässt, steht ab der ersten Anmeldung hier. Eine Änderung gilt sofort, auch in angemeldeten Browsern.`,
  rolesTitle: "Was eine Rolle darf",
  roles: { admin: "Admin", member: "Mitglied", viewer: "Leser" },
  mays: {
    viewer: "Sieht Sessions, Automationen und Repositories und ändert nichts.",
    member: "Startet und lenkt auch Sessions, legt Automationen an und verbindet Repositories.",
    admin:
      "Bestimmt auch, was für alle gilt: Personen und Schlüssel, Geheimnisse, Forges, Hosts, Grenzen und Budgets, Webhooks, das Protokoll.",
  },
  you: "du",
  disabled: "Gesperrt",
  seen: "gesehen",
  since: "dabei seit",
  sessions: "Sessions",
  of: (name) => `von ${name}`,
  roleOf: (name) => `Rolle von ${name}`,
  roleChanged: (name, role) => `${name}: ab jetzt ${role}.`,
  disable: "Sperren",
  disableQuestion: (name) => `${name} sperren?`,
  disableAbout:
    "Alle Browser werden abgemeldet, Schlüssel und Programme gelten nicht, bis jemand die Sperre aufhebt. Die Sessions laufen weiter.",
  isDisabled: (name) => `${name} ist gesperrt.`,
  enable: "Entsperren",
  isEnabled: (name) => `${name} kann sich wieder anmelden.`,
  remove: "Entfernen",
  removeQuestion: (name) => `${name} entfernen?`,
  removeAbout:
    "Name, Adresse und Konten bei Forges werden gelöscht, Schlüssel widerrufen. Was die Person wollte, bleibt, als das eines gelöschten Benutzers. Das lässt sich nicht zurücknehmen; lässt der Provider die Person wieder ein, ist sie jemand Neues.",
  isRemoved: (name) => `${name} wurde entfernt.`,
  invite: "Einladen",
  inviteTitle: "Jemanden einladen",
  name: "Name",
  email: "E-Mail-Adresse (freiwillig)",
  emailHint:
    "Dorthin geht der Link, wenn dieser Server einen Mailserver hat. Kennt euer Identity Provider die Person unter dieser Adresse, meldet sie sich von da an über ihn an.",
  role: "Rolle",
  makeLink: "Link erstellen",
  makingLink: "Wird erstellt …",
  linkOf: (name) => `Link für ${name}`,
  linkAbout: (until) =>
    `Er meldet einen Browser als diese Person an, einmal, bis ${until}. Schick ihn sonst niemandem. Er wird nur jetzt gezeigt.`,
  mailed: (address) => `Er geht auch per E-Mail an ${address}.`,
  notMailed: "Dieser Server hat keinen Mailserver: Gib der Person den Link selbst.",
  mail: { pending: "E-Mail unterwegs", sent: "E-Mail gesendet", dead: "die E-Mail ging nicht hinaus" },
  byLink: "meldet sich über einen Link an",
  invited: "eingeladen",
  notSeen: "noch nicht da",
  newLink: "Neuer Link",
  newLinkQuestion: (name) => `Neuen Link für ${name} erstellen?`,
  newLinkAbout: "Er meldet einen Browser als diese Person an. Unbenutzte Links enden; angemeldete Browser bleiben es.",
  empty: {
    title: "Noch hat sich niemand über einen Identity Provider angemeldet",
    text: "Wer es tut, und wen du einlädst, steht hier, mit einer Rolle. Schlüssel und einmalige Links der Kommandozeile melden niemand Bestimmten an.",
  },
  keys: "Schlüssel für Programme stehen in den Einstellungen.",
};
export default german;
