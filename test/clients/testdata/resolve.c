// SPDX-License-Identifier: Apache-2.0
// Prints every address that the C library's resolver returns for a name.
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	struct addrinfo hints, *list, *a;
	char text[128];
	int err;

	if (argc != 2)
		return 2;
	memset(&hints, 0, sizeof hints);
	hints.ai_socktype = SOCK_STREAM;
	err = getaddrinfo(argv[1], NULL, &hints, &list);
	if (err) {
		printf("getaddrinfo: %s\n", gai_strerror(err));
		return 1;
	}
	for (a = list; a; a = a->ai_next) {
		err = getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST);
		if (err) {
			printf("getnameinfo: %s\n", gai_strerror(err));
			return 1;
		}
		puts(text);
	}
	return 0;
}
