// SPDX-License-Identifier: Apache-2.0 Sends one datagram to each ADDRESS PORT on the command line
// with a single sendmmsg(). Receives as many with recvmmsg(), and prints each reply with its
// sender. With -c it connects to the first address and sends all datagrams there.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MAX 64

static struct mmsghdr msgs[MAX];
static struct iovec iovs[MAX];
static struct sockaddr_storage addrs[MAX];
static socklen_t lengths[MAX];
static char texts[MAX][64];

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int send_all(int fd, int n, int connected)
{
	int i, sent;

	memset(msgs, 0, sizeof msgs);
	for (i = 0; i < n; i++) {
		iovs[i].iov_base = texts[i];
		iovs[i].iov_len = snprintf(texts[i], sizeof texts[i], "%d", i);
		msgs[i].msg_hdr.msg_iov = &iovs[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
		if (!connected) {
			msgs[i].msg_hdr.msg_name = &addrs[i];
			msgs[i].msg_hdr.msg_namelen = lengths[i];
		}
	}
	sent = sendmmsg(fd, msgs, n, 0);
	printf("sent %d\n", sent);
	return sent == n ? 0 : fail("sendmmsg");
}

static int receive_all(int fd, int n)
{
	char host[64], port[16];
	int i, got, done = 0;

	while (done < n) {
		memset(msgs, 0, sizeof msgs);
		for (i = 0; i < n; i++) {
			iovs[i].iov_base = texts[i];
			iovs[i].iov_len = sizeof texts[i];
			msgs[i].msg_hdr.msg_iov = &iovs[i];
			msgs[i].msg_hdr.msg_iovlen = 1;
			msgs[i].msg_hdr.msg_name = &addrs[i];
			msgs[i].msg_hdr.msg_namelen = sizeof addrs[i];
		}
		got = recvmmsg(fd, msgs, n - done, MSG_WAITFORONE, NULL);
		if (got < 0)
			return fail("recvmmsg");
		for (i = 0; i < got; i++) {
			if (getnameinfo((void *)&addrs[i], msgs[i].msg_hdr.msg_namelen, host, sizeof host, port,
					sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
				return fail("getnameinfo");
			printf("from %s port %s: %.*s\n", host, port, (int)msgs[i].msg_len, texts[i]);
		}
		done += got;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct timeval patience = {.tv_sec = 5};
	int connected = 0, n = 0, fd;

	if (argc > 1 && !strcmp(argv[1], "-c")) {
		connected = 1;
		argv++;
		argc--;
	}
	for (int i = 1; i + 1 < argc && n < MAX; i += 2, n++) {
		struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM}, *a;

		if (getaddrinfo(argv[i], argv[i + 1], &hints, &a))
			return fail(argv[i]);
		memcpy(&addrs[n], a->ai_addr, a->ai_addrlen);
		lengths[n] = a->ai_addrlen;
	}
	if (!n)
		return 2;
	fd = socket(addrs[0].ss_family, SOCK_DGRAM, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience))
		return fail("socket");
	if (connected && connect(fd, (void *)&addrs[0], lengths[0]))
		return fail("connect");
	return send_all(fd, n, connected) || receive_all(fd, n);
}
