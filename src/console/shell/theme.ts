/**
 * Mantine's theme with enough contrast for small text: WCAG 2.2 success criterion 1.4.3 requires 4.5 to 1, which
 * Mantine's lighter default shades do not reach.
 */
import { type CSSVariablesResolver, createTheme } from '@mantine/core';

const MOTION_MS = 150;

export const theme = createTheme({
  fontFamily: 'system-ui, sans-serif',
  autoContrast: true,
  primaryShade: { light: 8, dark: 9 },
  respectReducedMotion: true,
  components: {
    Burger: { defaultProps: { transitionDuration: MOTION_MS } },
    Modal: {
      defaultProps: {
        closeButtonProps: { 'aria-label': 'Close' },
        transitionProps: { duration: MOTION_MS },
      },
    },
    // A `header` in a dialogue would be a second banner of the page.
    ModalHeader: { defaultProps: { component: 'div' } },
  },
});

/** Shades of green and yellow that are dark enough on a light background; for other colors Mantine's darkest shade is. */
const DARKER: { readonly [color: string]: string } = { green: '#1d6b2c', yellow: '#7a4a00' };

/** Text of each color, also on a light background of the same color, and outlined. */
function textShade(scheme: 'light' | 'dark'): { [name: string]: string } {
  const shades = ['blue', 'green', 'yellow', 'red', 'gray'].map((color) => {
    const darkest = DARKER[color] ?? `var(--mantine-color-${color}-9)`;
    return [color, scheme === 'light' ? darkest : `var(--mantine-color-${color}-2)`] as const;
  });
  return Object.fromEntries(
    shades.flatMap(([color, shade]) => [
      [`--mantine-color-${color}-light-color`, shade],
      [`--mantine-color-${color}-outline`, shade],
      [`--mantine-color-${color}-text`, shade],
    ]),
  );
}

export const cssVariablesResolver: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': 'var(--mantine-color-gray-7)',
    '--mantine-color-anchor': 'var(--mantine-color-blue-9)',
    '--mantine-color-placeholder': 'var(--mantine-color-gray-7)',
    '--mantine-color-error': 'var(--mantine-color-red-9)',
    ...textShade('light'),
  },
  dark: {
    '--mantine-color-dimmed': 'var(--mantine-color-dark-0)',
    '--mantine-color-anchor': 'var(--mantine-color-blue-3)',
    '--mantine-color-placeholder': 'var(--mantine-color-dark-0)',
    '--mantine-color-disabled': 'var(--mantine-color-dark-5)',
    '--mantine-color-error': 'var(--mantine-color-red-3)',
    ...textShade('dark'),
  },
});
