// Tags of locales, as programs give them.
import { pick, random } from './random.mjs';

/** A text with a chance of so many percent. */
export const maybe = (chance, text) => (random(100) < chance ? text() : '');

/** Tags. */
export const LOCALES = ['en-CA', 'sv-SE', 'en-GB', 'de-DE', 'fr-FR', 'es-ES', 'it-IT', 'pt-BR', 'nl-NL', 'pl-PL', 'ja-JP', 'zh-CN', 'ko-KR', 'ru-RU', 'tr-TR', 'ar', 'he-IL', 'hi-IN', 'th-TH', 'fa-IR',
  'en-US', 'en-AU', 'en-IN', 'en-NZ', 'en-ZA', 'de-AT', 'de-CH', 'fr-CA', 'fr-CH', 'es-MX', 'es-AR', 'pt-PT', 'zh-TW', 'zh-HK', 'ar-EG', 'ar-SA', 'uk-UA', 'cs-CZ', 'sk-SK', 'hu-HU',
  'ro-RO', 'bg-BG', 'el-GR', 'da-DK', 'nb-NO', 'nn-NO', 'fi-FI', 'et-EE', 'lv-LV', 'lt-LT', 'hr-HR', 'sr-RS', 'sr-Latn-RS', 'sl-SI', 'ca-ES', 'id-ID', 'vi-VN', 'bn-BD', 'ta-IN', 'ur-PK', 'sw', 'af', 'is', 'fil', 'ms', 'mr', 'my', 'ne', 'ka', 'hy', 'az', 'kk', 'uz', 'eu', 'gl', 'cy', 'ga', 'mk', 'sq', 'am', 'te', 'km', 'lo', 'mn', 'si'];

/** A tag, now and then with a keyword. */
export const localeOf = () => pick(LOCALES) + maybe(6, () => `-u-${pick(['nu-arab', 'nu-latn', 'nu-deva', 'ca-gregory', 'ca-buddhist', 'ca-persian', 'hc-h23', 'hc-h12', 'hc-h11', 'nu-foo', 'ca-foo', 'kn', 'co-phonebk'])}`);

