/** Acts as the browser of `proofgate ctl login`: opens its URL, signs in as ada, and allows the sign-in. */
import { readFileSync } from 'node:fs';
import { Browser } from '../../../.build/test/support/harness/browser.js';

const browser = new Browser(readFileSync(process.env.NODE_EXTRA_CA_CERTS, 'utf8'));
let page = await browser.follow(await browser.visit(process.argv[2]));
for (let forms = 0; page.body.includes('<form') && forms < 5; forms += 1) {
  const typed = page.body.includes('name="login"')
    ? { login: 'ada', password: 'any' }
    : page.body.includes('name="decision"')
      ? { decision: 'allow' }
      : {};
  page = await browser.follow(await browser.submit(page, typed));
}
await browser.close();
