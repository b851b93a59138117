import type { SignInTexts } from "../en/sign-in.ts";

const german: SignInTexts = {
  title: "Anmelden",
  about: { before: "Mit einem API-Schlüssel oder mit dem Link, den", after: "auf dem Server ausgibt." },
  key: "API-Schlüssel",
  invited: {
    title: "Du bist zu Offstage eingeladen",
    about: "Das meldet diesen Browser als dich an und geht nur einmal: Nimm den Browser, mit dem du arbeitest.",
  },
  signingIn: "Wird angemeldet …",
  signInWith: (provider) => `Anmelden mit ${provider}`,
  problems: {
    refused: "Du darfst dich bei diesem Server nicht anmelden: Bitte seinen Betreiber um Zugang.",
    disabled: "Dein Konto wurde gesperrt: Frag einen Admin.",
    denied: "Die Anmeldung wurde nicht beendet oder ließ sich nicht prüfen. Versuch es noch einmal.",
    expired: "Die Anmeldung dauerte zu lange oder begann in einem anderen Browser. Versuch es noch einmal.",
    unavailable:
      "Der Identity Provider antwortet nicht. Versuch es später noch einmal, oder nimm einen Schlüssel oder Link.",
  },
};
export default german;
