/**
 * A minimal browser for signing in: cookies by host, redirects one by one, forms that a person fills in or clicks. It sends
 * `Sec-Fetch-Site` and `Origin` as browsers do.
 */
import { Agent, fetch, type Response } from 'undici';

export interface Page {
  readonly url: string;
  readonly status: number;
  readonly headers: Response['headers'];
  readonly body: string;
  /** The redirect's location; undefined without one. */
  readonly location: string | undefined;
}

export interface SentForm {
  readonly action: string;
  readonly members: { readonly [name: string]: string };
}

interface Visit {
  readonly method: 'GET' | 'POST';
  readonly form?: { readonly [name: string]: string };
  readonly headers?: { readonly [name: string]: string };
}

const MAX_REDIRECTS = 20;

export class Browser {
  /** Values by name, by host; ports share cookies (RFC 6265 section 8.5). */
  readonly cookies = new Map<string, Map<string, string>>();
  /** `Set-Cookie` lines as they came, newest last. */
  readonly setCookies: string[] = [];
  readonly #agent: Agent;

  /** @param caPem whose certificates it trusts */
  constructor(caPem: string) {
    this.#agent = new Agent({ connect: { ca: caPem } });
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  cookie(url: string, name: string): string | undefined {
    return this.cookies.get(new URL(url).hostname)?.get(name);
  }

  /** One exchange, without redirects. */
  async visit(url: string, { method, form, headers }: Visit = { method: 'GET' }): Promise<Page> {
    const { hostname, origin } = new URL(url);
    const cookies = [...(this.cookies.get(hostname) ?? [])].map(([name, value]) => `${name}=${value}`);
    const answer = await fetch(url, {
      method,
      redirect: 'manual',
      dispatcher: this.#agent,
      headers: {
        accept: 'text/html,application/json',
        ...(cookies.length === 0 ? {} : { cookie: cookies.join('; ') }),
        ...(method === 'GET' ? {} : { origin, 'sec-fetch-site': 'same-origin' }),
        ...headers,
      },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
    });
    for (const line of answer.headers.getSetCookie()) this.#keep(hostname, line);
    const location = answer.headers.get('location');
    return {
      url,
      status: answer.status,
      headers: answer.headers,
      body: await answer.text(),
      location: location === null ? undefined : new URL(location, url).href,
    };
  }

  /** Follows redirects until a page comes, or until `isEnd` matches a location that must not be followed. */
  async follow(page: Page, isEnd: (url: string) => boolean = () => false): Promise<Page> {
    let at = page;
    for (let redirects = 0; at.location !== undefined && !isEnd(at.location); redirects++) {
      if (redirects === MAX_REDIRECTS) throw new Error(`too many redirects, the last to ${at.location}`);
      at = await this.visit(at.location);
    }
    return at;
  }

  /** Sends the one form of a page, with what a person adds to it. */
  submit(page: Page, typed: { readonly [name: string]: string } = {}): Promise<Page> {
    const { action, members } = formOf(page);
    return this.visit(action, { method: 'POST', form: { ...members, ...typed } });
  }

  #keep(hostname: string, line: string): void {
    this.setCookies.push(line);
    const [pair = '', ...attributes] = line.split(/; */);
    const [name = '', value = ''] = pair.split(/=(.*)/s);
    const ends = attributes.find((one) => /^(expires|max-age)=/i.test(one)) ?? '';
    const isOver = /^max-age=0$/i.test(ends) || Date.parse(ends.replace(/^expires=/i, '')) < Date.now();
    const jar = this.cookies.get(hostname) ?? new Map<string, string>();
    if (isOver) jar.delete(name);
    else jar.set(name, value);
    this.cookies.set(hostname, jar);
  }
}

/** @throws Error for a page without a form */
export function formOf({ body, url }: Page): SentForm {
  const action = /<form[^>]* action="([^"]*)"/.exec(body)?.[1];
  if (action === undefined) throw new Error(`no form at ${url}`);
  const inputs = [...body.matchAll(/<input[^>]*type="hidden"[^>]*>/g)].map(([input]) => [
    /name="([^"]*)"/.exec(input)?.[1] ?? '',
    /value="([^"]*)"/.exec(input)?.[1] ?? '',
  ]);
  return { action: new URL(action, url).href, members: Object.fromEntries(inputs) };
}
