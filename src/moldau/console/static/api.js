// Questions to the console's own API, and the session that they belong to.

export const session = { csrf: "", may_change: false, user: "", logged_in: false, login_wanted: false, bootstrap: "" };

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.message ?? `The console responded with ${status}.`);
    this.status = status;
    this.name = body?.error ?? "ERROR";
    this.away = Boolean(body?.away) || status === 503 || status === 0;
    this.unsupported = Boolean(body?.unsupported) || status === 501;
  }
}

export const LOGIN = "/api/session/login";

let onLogin = () => {};

export function whenLoginIsWanted(handler) {
  onLogin = handler;
}

async function ask(path, options, again = true) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { message: "The console itself does not respond. It may have been stopped.", error: "AWAY" });
  }
  if (response.ok) return response;
  let body = null;
  try {
    body = await response.json();
  } catch {
    // Not ours; the status says enough.
  }
  // A wrong password is for the form to tell.
  if (response.status === 401 && again && path !== LOGIN) {
    await loadSession();
    if (session.login_wanted) onLogin();
    else return ask(path, withToken(options), false);
  }
  throw new ApiError(response.status, body);
}

function withToken(options) {
  return options.method === "POST" ? { ...options, headers: { ...options.headers, "x-csrf-token": session.csrf } } : options;
}

export async function loadSession() {
  const response = await ask("/api/session", {}, false);
  Object.assign(session, await response.json());
  return session;
}

function address(path, query) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === null || value === "" || value === false) continue;
    for (const item of Array.isArray(value) ? value : [value]) parameters.append(name, item === true ? "true" : item);
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

export async function get(path, query, signal) {
  return (await ask(address(path, query), { signal })).json();
}

function postOptions(body, signal) {
  return {
    method: "POST",
    signal,
    headers: { "content-type": "application/json", "x-csrf-token": session.csrf },
    body: JSON.stringify(body),
  };
}

export async function post(path, body, signal) {
  return (await ask(path, postOptions(body, signal))).json();
}

/** Events of a live view, one after the other, until it ends or the signal aborts it. */
export async function* stream(path, body, signal) {
  const response = await ask(path, postOptions(body, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const event = JSON.parse(rest.slice("data: ".length, end));
      rest = rest.slice(end + 2);
      if (event.error) throw new ApiError(event.away ? 503 : 400, event);
      yield event;
    }
  }
}

/** A file that the API makes, handed to the browser's downloads. */
export async function download(path, body, name) {
  const response = await ask(path, postOptions(body));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
