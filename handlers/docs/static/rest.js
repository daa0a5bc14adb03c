// The REST reference: Swagger UI over the OpenAPI file, with the token of whoever logged in.

import { accessible, mend } from "./accessible.js";
import { keep, onToken } from "./session.js";

const login = "/auth/jwt/login";

const ui = window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  displayRequestDuration: true,
  filter: true,
  requestSnippetsEnabled: true,
  queryConfigEnabled: false,
  validatorUrl: null,
  plugins: [accessible],
  syntaxHighlight: { activated: true, theme: "arta" },
  // A login that is tried out logs in.
  responseInterceptor: (response) => {
    if (response.ok && new URL(response.url, location.href).pathname === login && response.obj?.access_token) keep(response.obj.access_token);
    return response;
  },
  onComplete: () => {
    let known = null;
    onToken((token) => {
      if (token) ui.preauthorizeApiKey("bearer", token);
      else if (known) ui.authActions.logout(["bearer"]);
      known = token;
    });
  },
});

mend(document.getElementById("reference"));
