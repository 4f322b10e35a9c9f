/** Writes the flat messages of Canal, of the MariaDB server at a port, to a file: one a line. */
import com.alibaba.otter.canal.instance.manager.*;
import com.alibaba.otter.canal.instance.manager.model.*;
import com.alibaba.otter.canal.instance.manager.model.CanalParameter.*;
import com.alibaba.otter.canal.instance.core.*;
import com.alibaba.otter.canal.server.embedded.CanalServerWithEmbedded;
import com.alibaba.otter.canal.protocol.*;
import com.alibaba.otter.canal.connector.core.producer.MQMessageUtils;
import com.alibaba.fastjson2.*;
import java.util.*; import java.util.concurrent.*; import java.net.*; import java.nio.file.*; import java.io.*;
public class CanalRecorder {
  public static void main(String[] a) throws Exception {
    int port = Integer.parseInt(a[0]);
    CanalServerWithEmbedded server = CanalServerWithEmbedded.instance();
    server.setCanalInstanceGenerator(d -> {
      Canal c = new Canal(); c.setId(1L); c.setName("example");
      CanalParameter p = new CanalParameter();
      p.setMetaMode(MetaMode.MEMORY); p.setHaMode(HAMode.HEARTBEAT); p.setIndexMode(IndexMode.MEMORY);
      p.setStorageMode(StorageMode.MEMORY); p.setMemoryStorageBufferSize(32*1024);
      p.setSourcingType(SourcingType.MYSQL);
      p.setDbAddresses(Arrays.asList(new InetSocketAddress("127.0.0.1", port)));
      p.setDbUsername("debezium"); p.setDbPassword("debezium");
      p.setSlaveId(1234L); p.setDefaultConnectionTimeoutInSeconds(30); p.setConnectionCharset("UTF-8");
      p.setReceiveBufferSize(8*1024); p.setSendBufferSize(8*1024); p.setDetectingEnable(false); p.setDetectingIntervalInSeconds(10); p.setDetectingRetryTimes(3); p.setDetectingSQL("select 1");
      c.setCanalParameter(p);
      return new CanalInstanceWithManager(c, ".*\\..*");
    });
    server.start(); server.start("example");
    ClientIdentity id = new ClientIdentity("example", (short) 1);
    server.subscribe(id);
    ThreadPoolExecutor ex = (ThreadPoolExecutor) Executors.newFixedThreadPool(2);
    PrintWriter out = new PrintWriter(new FileWriter(a[1]));
    long end = System.currentTimeMillis() + 600_000;
    while (System.currentTimeMillis() < end) {
      Message m = server.getWithoutAck(id, 1000);
      if (m.getId() == -1 ) { Thread.sleep(200); continue; }
      for (FlatMessage f : MQMessageUtils.messageConverter(MQMessageUtils.buildMessageData(m, ex), m.getId())) { out.println(JSON.toJSONString(f, JSONWriter.Feature.WriteNulls)); out.flush(); }
      server.ack(id, m.getId());
    }
    System.exit(0);
  }
}
