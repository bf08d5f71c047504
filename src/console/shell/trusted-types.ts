/**
 * The only way in which text becomes HTML in the console: Mantine sets its style sheets so. They hold no markup, and nothing else
 * is accepted. Scripts are never made of text. Source: W3C Trusted Types.
 */
interface TrustedTypes {
  createPolicy(name: string, rules: { createHTML(text: string): string }): unknown;
}

declare global {
  var trustedTypes: TrustedTypes | undefined;
}

/** Before anything is rendered. Browsers without trusted types have the rest of the Content-Security-Policy. */
export function acceptTextOnly(): void {
  globalThis.trustedTypes?.createPolicy('default', {
    createHTML(text) {
      if (/[<&]/.test(text)) throw new TypeError('the console makes no HTML of text');
      return text;
    },
  });
}
