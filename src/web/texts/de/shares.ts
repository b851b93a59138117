import type { ShareTexts } from "../en/shares.ts";

const german: ShareTexts = {
  made: "angelegt",
  by: "von",
  ends: "endet",
  expired: "endete",
  revoked: "widerrufen",
  used: "benutzt",
  unused: "noch nicht benutzt",
  revoke: "Widerrufen",
  revokeQuestion: "Den Link widerrufen?",
  revokeText: "Er zeigt von da an nichts mehr.",
};
export default german;
