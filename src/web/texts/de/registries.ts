import type { RegistryTexts } from "../en/registries.ts";

const german: RegistryTexts = {
  title: "Private Paket-Registries",
  about:
    "Setups und Agenten aller Sessions installieren daraus. Ein Token kommt nie in eine Sandbox: Was eine Sandbox von der Adresse der Registry verlangt, bekommt es außerhalb, auf dem Weg dorthin. Veröffentlichen lässt sich nichts.",
  none: "Noch keine privaten Registries.",
  everything: "alle Pakete",
  user: (name) => `Benutzer ${name}`,
  set: "gesetzt",
  add: "Registry hinzufügen",
  adding: "Wird hinzugefügt …",
  verb: "Hinzufügen",
  kind: "Art",
  isForAll: {
    pypi: "Alles, was pip und uv installieren, kommt daraus.",
    maven: "Alles, was Maven verlangt, kommt daraus.",
    nuget: "Ihre Pakete stehen neben denen von nuget.org.",
    rubygems: "Alles, was gem und Bundler installieren, kommt daraus.",
  },
  url: "Adresse",
  urlHint: {
    npm: "Wie sie bei npm eingestellt wird. Alles darunter bekommt das Token; bei GitLabs Adresse einer Instanz oder Gruppe auch die Pakete ihrer Projekte.",
    pypi: "Die ihres Index, die mit /simple/ endet. Auch alles daneben bekommt das Token; bei Azure Artifacts, was die Feeds desselben Projekts oder derselben Organisation anbieten.",
    maven: "Wie sie in Mavens Einstellungen steht. Alles darunter bekommt das Token.",
    cargo:
      "Die ihres Index. Alles darunter bekommt das Token, und wo laut seiner config.json die Crates sind, am selben Host.",
    go: "Wie sie in GOPROXY steht. Alles darunter bekommt das Token.",
    nuget: "Die ihrer index.json. Alles daneben bekommt das Token, und wo laut ihr die Pakete sind, am selben Host.",
    rubygems: "Wie sie bei gem eingestellt wird. Alles darunter bekommt das Token.",
  },
  scope: { npm: "Scope", cargo: "Name in Cargo", go: "Module" },
  scopeHint: {
    npm: "Dessen Pakete kommen daraus, etwa @acme. Leer: alle.",
    cargo: "Wie sie in Cargo.toml heißt, etwa acme. Leer: Sie steht an der Stelle von crates.io.",
    go: "Muster derer, die daraus kommen, etwa go.acme.example/*, mit Kommas dazwischen; nach ihnen wird keine Datenbank von Prüfsummen gefragt. Leer: alle.",
  },
  username: "Benutzername",
  usernameHint: "Mit einem ist das Token sein Passwort (Basic). Leer: Das Token wird als Bearer gesendet.",
  usernameHintCargo: "Mit einem ist das Token sein Passwort (Basic). Leer: Das Token wird so gesendet, wie es ist.",
  token: "Token",
  newToken: "Neues Token",
  tokenHint: "Eines, das nur lesen darf. Es wird nie wieder gezeigt.",
  replace: "Token ersetzen",
  replaceOf: (registry) => `Neues Token von ${registry}`,
  save: "Speichern",
  saving: "Wird gespeichert …",
  remove: "Löschen",
  removeOf: (registry) => `${registry} löschen?`,
  removeAbout: "Ihr Token wird mit ihr gelöscht. Was danach beginnt, installiert nicht mehr daraus.",
};
export default german;
