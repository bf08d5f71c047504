/** Icons of the console: 16 × 16, in the color of the text, and hidden from screen readers. */
import type { ReactNode } from 'react';

function Icon({ children }: { readonly children: ReactNode }) {
  return (
    <svg
      width="16"
      height="16"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const IconCopy = () => (
  <Icon>
    <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
    <path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2" />
  </Icon>
);
export const IconCheck = () => (
  <Icon>
    <path d="m3 8.5 3.5 3.5L13 4.5" />
  </Icon>
);
export const IconSun = () => (
  <Icon>
    <circle cx="8" cy="8" r="3" />
    <path d="M8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.5 1.5M11.5 11.5 13 13M13 3l-1.5 1.5M4.5 11.5 3 13" />
  </Icon>
);
export const IconTerminal = () => (
  <Icon>
    <path d="m2.5 4 3.5 4-3.5 4M8 12h5.5" />
  </Icon>
);
export const IconHome = () => (
  <Icon>
    <path d="m2 7.5 6-5 6 5M3.5 6.5v7h9v-7" />
  </Icon>
);
export const IconAudit = () => (
  <Icon>
    <path d="M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2" />
  </Icon>
);
export const IconAccess = () => (
  <Icon>
    <circle cx="8" cy="5" r="2.5" />
    <path d="M3 13.5c.5-3 2.5-4.5 5-4.5s4.5 1.5 5 4.5" />
  </Icon>
);
export const IconSetUp = () => (
  <Icon>
    <path d="m2.5 4.5 1 1 2-2M2.5 11.5l1 1 2-2M8 4.5h5.5M8 11.5h5.5" />
  </Icon>
);
export const IconSource = () => (
  <Icon>
    <circle cx="8" cy="3.5" r="1.5" />
    <path d="M8 5v8.5M3 9c0 3 2.5 4.5 5 4.5s5-1.5 5-4.5M5.5 7h5" />
  </Icon>
);
export const IconPolicy = () => (
  <Icon>
    <path d="M8 2 3 4v4c0 3 2 5 5 6 3-1 5-3 5-6V4z" />
  </Icon>
);
export const IconApproval = () => (
  <Icon>
    <circle cx="8" cy="8" r="5.5" />
    <path d="m5.5 8 2 2 3-3.5" />
  </Icon>
);
export const IconKey = () => (
  <Icon>
    <circle cx="5" cy="11" r="2.5" />
    <path d="m7 9 6-6M10.5 5.5 13 8" />
  </Icon>
);
export const IconBlocked = () => (
  <Icon>
    <circle cx="8" cy="8" r="5.5" />
    <path d="m4.2 4.2 7.6 7.6" />
  </Icon>
);
export const IconRoute = () => (
  <Icon>
    <circle cx="3.5" cy="12.5" r="1.5" />
    <circle cx="12.5" cy="3.5" r="1.5" />
    <path d="M5 12.5h4a2.2 2.2 0 0 0 0-4.5H7a2.2 2.2 0 0 1 0-4.500h4" />
  </Icon>
);
export const IconTarget = () => (
  <Icon>
    <circle cx="8" cy="8" r="5.5" />
    <circle cx="8" cy="8" r="2" />
  </Icon>
);
export const IconDenial = () => (
  <Icon>
    <rect x="2.5" y="2.5" width="11" height="11" rx="2" />
    <path d="m5.5 5.5 5 5M10.5 5.5l-5 5" />
  </Icon>
);
export const IconExplain = () => (
  <Icon>
    <circle cx="7" cy="7" r="4.5" />
    <path d="m10.5 10.5 3.5 3.5" />
  </Icon>
);
