/**
 * The two HTML pages that signing in needs without a console: confirmation of a command line, and an error page. They
 * have no scripts, and escape all external text.
 */
import { hash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { signInCode } from '../../protocol/sign-in-code.ts';
import type { CommandLine } from '../operators/sealed-sign-in.ts';

const STYLE =
  'body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem}' +
  'strong.code{font:600 1.6rem/2 ui-monospace,monospace;letter-spacing:.1em}' +
  'button{font:inherit;padding:.5rem 1.25rem;margin-right:.75rem}';
const STYLE_SOURCE = `'sha256-${hash('sha256', STYLE, 'base64')}'`;

export interface ConfirmPage {
  readonly confirmation: string;
  readonly displayName: string;
  readonly commandLine: CommandLine;
}

export function sendConfirmPage(reply: FastifyReply, page: ConfirmPage): FastifyReply {
  const { confirmation, displayName, commandLine } = page;
  const port = new URL(commandLine.redirect).port;
  const body = `<h1>Sign in the command line?</h1>
<p>A program on this computer, on port ${escaped(port)}, wants to use Proofgate as <b>${escaped(displayName)}</b>.
Allow it only if you have just run <code>proofgate ctl login</code> yourself and it shows this code:</p>
<p><strong class="code">${escaped(signInCode(commandLine.challenge))}</strong></p>
<form method="post" action="confirm">
<input type="hidden" name="confirmation" value="${escaped(confirmation)}">
<button name="decision" value="allow">Allow</button>
<button name="decision" value="deny">Deny</button>
</form>`;
  // CSP form-action applies to the form's redirect too; it cannot name an IPv6 host (CSP Level 3, host-source).
  const { host } = new URL(commandLine.redirect);
  const redirect = host.startsWith('[') ? 'http:' : `http://${host}`;
  // Under the API's `no-referrer` policy, the browser would send the form with `Origin: null`.
  reply.header('referrer-policy', 'same-origin');
  return sendPage(reply, 'Sign in the command line?', body, `'self' ${redirect}`);
}

export function sendFaultPage(
  reply: FastifyReply,
  status: number,
  title: string,
  code: string,
): FastifyReply {
  reply.code(status);
  const body = `<h1>Not signed in</h1><p>${escaped(title)}.</p><p><code>${escaped(code)}</code></p>`;
  return sendPage(reply, 'Not signed in', body, `'none'`);
}

function sendPage(reply: FastifyReply, title: string, body: string, formAction: string): FastifyReply {
  const policy = [
    `default-src 'none'`,
    `style-src ${STYLE_SOURCE}`,
    `form-action ${formAction}`,
    `base-uri 'none'`,
    `frame-ancestors 'none'`,
  ];
  reply.header('content-security-policy', policy.join('; '));
  return reply
    .type('text/html; charset=utf-8')
    .serializer(String)
    .send(
      `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escaped(title)}</title><style>${STYLE}</style>${body}</html>\n`,
    );
}

const ENTITIES: { readonly [character: string]: string } = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for HTML content and quoted attributes. */
export function escaped(value: string): string {
  return value.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
