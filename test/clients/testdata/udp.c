// SPDX-License-Identifier: Apache-2.0
// Sends datagrams to HOST PORT in an unusual way, TRICK, and prints each reply with its sender.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define SEGMENT 40
#define SEGMENTS 10

static struct sockaddr_storage to, second;
static socklen_t tolen, secondlen;
static int xs; // how many of them were in replies

static void check(int ok, const char *what)
{
	if (ok)
		return;
	printf("%s: %s\n", what, strerrorname_np(errno));
	exit(1);
}

static socklen_t parse(const char *host, const char *port, struct sockaddr_storage *a)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				  .ai_socktype = SOCK_DGRAM },
			*found;
	socklen_t len;

	check(getaddrinfo(host, port, &hints, &found) == 0, host);
	len = found->ai_addrlen;
	memcpy(a, found->ai_addr, len);
	freeaddrinfo(found);
	return len;
}

static int sock(void)
{
	struct timeval wait = { .tv_sec = 5 };
	int fd = socket(to.ss_family, SOCK_DGRAM, 0);

	check(fd >= 0, "socket");
	check(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0, "SO_RCVTIMEO");
	return fd;
}

static void show(const char *what, void *addr, socklen_t len)
{
	char host[64], port[16];

	check(getnameinfo(addr, len, host, sizeof host, port, sizeof port,
			  NI_NUMERICHOST | NI_NUMERICSERV) == 0, "getnameinfo");
	printf("%s %s port %s", what, host, port);
}

static void reply(int fd)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof from;
	char text[4096], *c;
	ssize_t n = recvfrom(fd, text, sizeof text - 1, 0, (void *)&from, &len);

	check(n >= 0, "recvfrom");
	text[n] = 0;
	show("from", &from, len);
	printf(": %s\n", text);
	for (c = text; *c; c++)
		xs += *c == 'x';
}

static void dial(int fd, struct sockaddr_storage *a, socklen_t len)
{
	struct sockaddr_storage peer;
	socklen_t peerlen = sizeof peer;

	check(connect(fd, (void *)a, len) == 0, "connect");
	check(getpeername(fd, (void *)&peer, &peerlen) == 0, "getpeername");
	show("peer", &peer, peerlen);
	printf("\n");
	check(send(fd, "hello", 5, 0) == 5, "send");
	reply(fd);
}

static void dissolve(int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	check(connect(fd, &none, sizeof none) == 0, "connect AF_UNSPEC");
}

// One send() is many datagrams; their replies can come back as one.
static void segment(int connected)
{
	int fd = sock(), size = SEGMENT, on = 1;
	char all[SEGMENT * SEGMENTS];

	memset(all, 'x', sizeof all);
	check(setsockopt(fd, SOL_UDP, UDP_SEGMENT, &size, sizeof size) == 0, "UDP_SEGMENT");
	check(setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on) == 0, "UDP_GRO");
	if (connected)
		check(connect(fd, (void *)&to, tolen) == 0, "connect");
	check(sendto(fd, all, sizeof all, 0, connected ? NULL : (void *)&to, connected ? 0 : tolen) ==
		      sizeof all, "sendto");
	for (xs = 0; xs < (int)sizeof all;)
		reply(fd);
	printf("\n%d came back\n", xs);
}

// The program names the source address of a datagram, and learns at which of its own a reply came.
static void pktinfo(void)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = {};
	struct sockaddr_storage from;
	struct in_pktinfo *info = (void *)CMSG_DATA(&control.head);
	char text[256] = "hello";
	struct iovec iov = { text, 5 };
	struct msghdr m = { &to, tolen, &iov, 1, &control, sizeof control, 0 };
	int fd = sock(), on = 1;

	check(setsockopt(fd, SOL_IP, IP_PKTINFO, &on, sizeof on) == 0, "IP_PKTINFO");
	control.head = (struct cmsghdr){ CMSG_LEN(sizeof *info), SOL_IP, IP_PKTINFO };
	info->ipi_spec_dst.s_addr = inet_addr("192.0.2.1");
	check(sendmsg(fd, &m, 0) == 5, "sendmsg");
	iov.iov_len = sizeof text - 1;
	m.msg_name = &from;
	m.msg_namelen = sizeof from;
	check(recvmsg(fd, &m, 0) > 0, "recvmsg");
	show("from", &from, m.msg_namelen);
	printf(": %s\narrived at %s\n", text, inet_ntoa(info->ipi_addr));
}

// The error queue is the kernel's: it names whom the kernel sent to.
static void errqueue(void)
{
	struct sockaddr_storage from;
	char text[256], control[512];
	struct iovec iov = { text, sizeof text };
	struct msghdr m = { &from, sizeof from, &iov, 1, control, sizeof control, 0 };
	int fd = sock(), on = 1;
	struct pollfd p = { fd, 0, 0 };

	check(setsockopt(fd, SOL_IP, IP_RECVERR, &on, sizeof on) == 0, "IP_RECVERR");
	check(connect(fd, (void *)&to, tolen) == 0, "connect");
	check(send(fd, "hello", 5, 0) == 5, "send");
	check(poll(&p, 1, 5000) == 1, "poll");
	check(recvmsg(fd, &m, MSG_ERRQUEUE) == 5, "recvmsg");
	show("error from", &from, m.msg_namelen);
	printf("\n");
}

// Like SIP: replies and requests come to the port from which the first request went.
static void symmetric(void)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(5060) };
	int fd = sock(), i;

	check(bind(fd, (void *)&from, sizeof from) == 0, "bind");
	check(sendto(fd, "INVITE", 6, 0, (void *)&to, tolen) == 6, "sendto");
	for (i = 0; i < 3; i++)
		reply(fd);
}

int main(int argc, char **argv)
{
	const char *trick = argv[1];
	int fd;

	tolen = parse(argv[2], argv[3], &to);
	if (argc > 5)
		secondlen = parse(argv[4], argv[5], &second);
	if (!strcmp(trick, "segment")) {
		segment(1);
		segment(0);
	} else if (!strcmp(trick, "pktinfo")) {
		pktinfo();
	} else if (!strcmp(trick, "errqueue")) {
		errqueue();
	} else if (!strcmp(trick, "symmetric")) {
		symmetric();
	} else if (!strcmp(trick, "again")) {
		fd = sock();
		dial(fd, &to, tolen);
		dissolve(fd);
		dial(fd, &second, secondlen);
		dial(fd, &to, tolen); // a datagram socket can connect again without being dissolved
	} else {
		fd = sock();
		if (!strcmp(trick, "device"))
			check(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "eth0", 4) == 0, "SO_BINDTODEVICE");
		check(sendto(fd, "hello", 5, 0, (void *)&to, tolen) == 5, "sendto");
		reply(fd);
		dial(fd, &to, tolen);
	}
	return 0;
}
