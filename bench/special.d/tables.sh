# Small transactions (three updates, one insert) over 1,000 tracked tables, divided by those over 4, the link up. Target: at
# least 0.9. The same over untracked tables of `base` shows what the number of tables costs PostgreSQL itself. Measured when
# each connection has met all tables (PEERS_WARM_SECONDS, 10): reading a thousand descriptions is the begin of a connection.

many=${PEERS_TABLES:-1000} warm=${PEERS_WARM_SECONDS:-10}
# As many rows in 4 tables as in all, so that clients do not wait for each other more often there.
few_rows=$((many * 100 / 4))

create_many() {
	sql "$1" "$2" -c "DO \$\$ BEGIN
		FOR i IN 1 .. $many LOOP
			EXECUTE format('CREATE TABLE many_%s (id bigserial PRIMARY KEY, a int NOT NULL DEFAULT 0, b text)', i);
			EXECUTE format('INSERT INTO many_%s (b) SELECT repeat(''x'', 80) FROM generate_series(1, %s)', i,
				CASE WHEN i <= 4 THEN $few_rows ELSE 100 END);
			IF i % 100 = 0 THEN COMMIT; END IF;
		END LOOP;
	END \$\$"
}

# tps_over DATABASE TABLES
tps_over() {
	cat >"$dir/many.sql" <<-SQL
		\\set t1 random(1, $2)
		\\set t2 random(1, $2)
		\\set t3 random(1, $2)
		\\set t4 random(1, $2)
		\\set id random(1, $([ "$2" = 4 ] && echo "$few_rows" || echo 100))
		BEGIN;
		UPDATE many_:t1 SET a = a + 1 WHERE id = :id;
		UPDATE many_:t2 SET a = a + 1 WHERE id = :id;
		UPDATE many_:t3 SET a = a + 1 WHERE id = :id;
		INSERT INTO many_:t4 (b) VALUES ('one more');
		END;
	SQL
	# Deadlocks are the script's own affair: they are tried again.
	pgbench -n -c 4 -j 2 -P 1 -T $((warm + seconds)) --max-tries=100 -f "$dir/many.sql" -p "$port_a" "$1" 2>&1 |
		awk -v warm="$warm" '/^progress:/ && $2 > warm { n++; sum += $4 } END { print sum / n }'
}

measure() {
	local r db count
	local -A tps
	begin_peer onerepl
	peer_setup
	create_many "$port_b" bench
	create_many "$port_a" base
	create_many "$port_a" bench
	a -c "SELECT count(onerepl_add_table(format('many_%s', i)::regclass)) FROM generate_series(1, $many) AS i" >>"$dir/setup.log"
	link_start
	mark && await_mark
	for ((r = 1; r <= rounds; r++)); do
		for db in base bench; do
			for count in 4 "$many"; do tps[$db.$count]=$(tps_over $db "$count"); done
		done
		mark && await_mark
		result tables_4 "$r" "${tps[bench.4]}" tps
		result "tables_$many" "$r" "${tps[bench.$many]}" tps
		result tables_ratio "$r" "$(calc "${tps[bench.$many]} / ${tps[bench.4]}")" x
		result tables_ratio_untracked "$r" "$(calc "${tps[base.$many]} / ${tps[base.4]}")" x
	done
}
