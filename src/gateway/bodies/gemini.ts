import {
  any,
  bytes,
  count,
  data,
  dataFields,
  list,
  mediaType,
  object,
  oneOf,
  refused,
  why,
  type Shape,
} from "./shape.ts";

const blob = object({ mimeType: mediaType, data: bytes, displayName: any });
const fileData = refused("source:url", why.fetched);

const part: Shape = object({
  inlineData: blob,
  fileData,
  functionResponse: object({
    parts: list(() => object({ inlineData: blob, fileData })),
    ...dataFields("id", "name", "response", "willContinue", "scheduling"),
  }),
  text: any,
  ...dataFields("thought", "thoughtSignature", "functionCall", "videoMetadata", "partMetadata"),
  // A level, the highest of which is assumed; not a number of tokens.
  mediaResolution: object({ level: any }),
  executableCode: refused("tool:codeExecution", why.tool),
  codeExecutionResult: refused("tool:codeExecution", why.tool),
});
const content = object({ role: any, parts: list(() => part) });

/** Every other kind of tool runs at the provider, and is named by its field. */
const tool: Shape = object({
  functionDeclarations: data,
  ...Object.fromEntries(
    ["googleSearch", "googleSearchRetrieval", "enterpriseWebSearch", "urlContext", "codeExecution", "fileSearch"]
      .concat("googleMaps", "computerUse", "mcpServers", "retrieval", "exaAiSearch", "parallelAiSearch")
      .map((name) => [name, refused(`tool:${name}`, why.tool)]),
  ),
});

const sameModel: Shape = { scalar: { kind: "sameModel" } };

const fields: Readonly<Record<string, Shape>> = {
  model: sameModel,
  contents: list(() => content, { counts: "turns" }),
  systemInstruction: content,
  tools: list(() => tool, { counts: "tools" }),
  generationConfig: object(
    {
      candidateCount: count("choices"),
      maxOutputTokens: count("maxOutput"),
      responseModalities: list(() => oneOf("modality", why.price, "TEXT")),
      speechConfig: refused("modality:AUDIO", why.price),
      imageConfig: refused("modality:IMAGE", why.price),
      ...dataFields("stopSequences", "responseSchema", "responseJsonSchema", "_responseJsonSchema"),
      ...dataFields("temperature", "topP", "topK", "seed", "presencePenalty", "frequencyPenalty", "responseLogprobs"),
      ...dataFields("logprobs", "thinkingConfig"),
      mediaResolution: any,
      responseMimeType: oneOf("modality", why.price, "text/*", "application/json"),
      responseFormat: object({ text: data }),
    },
    { place: "outputLimit" },
  ),
  cachedContent: refused("field:cachedContent", why.kept),
  serviceTier: oneOf("tier", why.price, "standard", "flex", "STANDARD", "FLEX"),
  store: refused("field:store", why.kept),
  ...dataFields("toolConfig", "safetySettings", "labels"),
};

/**
 * Gemini's generateContent: ai.google.dev/api/generate-content. Names are compared in `camelCase`; bodies may use
 * `snake_case`.
 */
export const geminiContent: Shape = object(fields);
/** Gemini's countTokens. */
export const geminiTokens: Shape = object({
  contents: list(() => content),
  generateContentRequest: object(fields),
});

const embedding: Readonly<Record<string, Shape>> = {
  model: sameModel,
  content,
  ...dataFields("taskType", "title", "outputDimensionality"),
};
/** Gemini's embedContent. */
export const geminiEmbedding: Shape = object(embedding);
/** Gemini's batchEmbedContents. */
export const geminiEmbeddings: Shape = object({ requests: list(() => object(embedding)) });
