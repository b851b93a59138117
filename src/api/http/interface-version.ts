/** Version of the API, as its OpenAPI description and its MCP server state it. */
export const interfaceVersion = "1.0.0";
