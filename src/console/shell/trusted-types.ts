/**
 * The only policy by which text becomes HTML in the console: Mantine sets its style sheets in this way. It accepts only
 * text without markup. Scripts are never created from text. Source: W3C Trusted Types.
 */
interface TrustedTypes {
  createPolicy(name: string, rules: { createHTML(text: string): string }): unknown;
}

declare global {
  var trustedTypes: TrustedTypes | undefined;
}

/**
 * Call it before anything is rendered. Browsers without trusted types still apply the rest of the
 * Content-Security-Policy.
 */
export function acceptTextOnly(): void {
  globalThis.trustedTypes?.createPolicy('default', {
    createHTML(text) {
      if (/[<&]/.test(text)) throw new TypeError('the console makes no HTML of text');
      return text;
    },
  });
}
