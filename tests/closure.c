/* SPDX-License-Identifier: MIT */
/* Linked with the objects of a layer and those below it: what they call upward is
 * an undefined reference here. */

int
main(void)
{
	return 0;
}
