/*
 * counter: counts what leaves this network namespace, on every interface, by
 * destination. Reads commands from standard input: "count" writes one line of JSON,
 * {"dropped":0,"to":{"10.0.0.1 443":2}}, "clear" forgets. TCP and UDP only: what the
 * kernel says to its neighbours is nobody's call.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>


#define PLACES_MAX   8192
#define PACKET_MAX   256
#define BUFFER_SIZE  (16 * 1024 * 1024)

typedef struct {
    char      address[INET6_ADDRSTRLEN];
    uint16_t  port;
    unsigned  packets;
} place_t;

static place_t   places[PLACES_MAX];
static size_t    place_count;
static unsigned  dropped;


static void
count_to(int family, const void *address, const unsigned char *ports)
{
    char      text[INET6_ADDRSTRLEN];
    size_t    i;
    uint16_t  port;

    port = (uint16_t) (ports[2] << 8 | ports[3]);
    (void) inet_ntop(family, address, text, sizeof(text));

    for (i = 0; i < place_count; i++) {
        if (places[i].port == port && strcmp(places[i].address, text) == 0) {
            places[i].packets++;
            return;
        }
    }

    if (place_count == PLACES_MAX) {
        dropped++;
        return;
    }

    memcpy(places[i].address, text, sizeof(text));
    places[i].port = port;
    places[i].packets = 1;
    place_count++;
}


static void
count_packet(const unsigned char *p, size_t len, unsigned protocol)
{
    size_t                  head;
    const struct iphdr     *ip;
    const struct ip6_hdr   *ip6;

    if (protocol == ETH_P_IP && len >= sizeof(struct iphdr)) {
        ip = (const struct iphdr *) p;
        head = (size_t) ip->ihl * 4;

        if ((ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP)
            && len >= head + 4)
        {
            count_to(AF_INET, &ip->daddr, p + head);
        }

    } else if (protocol == ETH_P_IPV6 && len >= sizeof(struct ip6_hdr) + 4) {
        ip6 = (const struct ip6_hdr *) p;

        if (ip6->ip6_nxt == IPPROTO_TCP || ip6->ip6_nxt == IPPROTO_UDP) {
            count_to(AF_INET6, &ip6->ip6_dst, p + sizeof(struct ip6_hdr));
        }
    }
}


/* Takes all that is waiting. */
static void
count_all(int fd)
{
    ssize_t                 n;
    socklen_t               len;
    struct sockaddr_ll      from;
    struct tpacket_stats    stats;
    static unsigned char    packet[PACKET_MAX];

    for ( ;; ) {
        len = sizeof(from);
        n = recvfrom(fd, packet, sizeof(packet), MSG_DONTWAIT,
                     (struct sockaddr *) &from, &len);

        if (n < 0) {
            break;
        }

        if (from.sll_pkttype == PACKET_OUTGOING) {
            count_packet(packet, (size_t) n, ntohs(from.sll_protocol));
        }
    }

    if (errno != EAGAIN && errno != EINTR) {
        dropped++;
    }

    len = sizeof(stats);

    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0) {
        dropped += stats.tp_drops;
    }
}


static void
count_write(void)
{
    size_t  i;

    printf("{\"dropped\":%u,\"to\":{", dropped);

    for (i = 0; i < place_count; i++) {
        printf("%s\"%s %u\":%u", i ? "," : "", places[i].address, places[i].port,
               places[i].packets);
    }

    printf("}}\n");
    fflush(stdout);
}


int
main(void)
{
    int            fd, size;
    char           line[64];
    struct pollfd  wait[2];

    fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
    size = BUFFER_SIZE;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0) {
        perror("counter");
        return 1;
    }

    setvbuf(stdin, NULL, _IONBF, 0);
    printf("ready\n");
    fflush(stdout);

    for ( ;; ) {
        wait[0] = (struct pollfd) { .fd = fd, .events = POLLIN };
        wait[1] = (struct pollfd) { .fd = STDIN_FILENO, .events = POLLIN };
        (void) poll(wait, 2, -1);
        count_all(fd);

        if (wait[1].revents == 0) {
            continue;
        }

        if (fgets(line, sizeof(line), stdin) == NULL) {
            return 0;
        }

        if (strcmp(line, "count\n") == 0) {
            count_write();

        } else if (strcmp(line, "clear\n") == 0) {
            place_count = 0;
            dropped = 0;
            printf("cleared\n");
            fflush(stdout);
        }
    }
}
